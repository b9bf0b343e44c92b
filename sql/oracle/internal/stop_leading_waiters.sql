procedure internal_stop_leading_waiters(p_lock in number)
is
-- routine   internal_stop_leading_waiters
-- version   1
-- purpose   Let another waiter of the queue lead.
-- promise   none
-- locks     gives back the session's lock p_lock
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own
    v_result number;
begin
    execute immediate
        'begin :1 := sys.dbms_lock.release(id => :2); end;'
        using out v_result, in p_lock;
end internal_stop_leading_waiters;
