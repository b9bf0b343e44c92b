procedure internal_stop_leading_waiters(p_lock in number)
is
-- routine   internal_stop_leading_waiters
-- purpose   Let another waiter of the queue lead.
-- locks     gives back the session's lock p_lock
-- differs   this engine's own
    v_result number;
begin
    execute immediate
        'begin :1 := sys.dbms_lock.release(id => :2); end;'
        using out v_result, in p_lock;
end internal_stop_leading_waiters;
