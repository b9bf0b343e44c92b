function internal_try_lead_waiters(p_lock in number)
return boolean
is
-- routine   internal_try_lead_waiters
-- purpose   Wait for a second at most to be the one waiter of a queue that looks for all.
-- locks     the lock p_lock, kept until internal_stop_leading_waiters or the session's end
-- differs   this engine's own
    v_result number;
begin
    -- This is dynamic SQL, so that the package compiles without a right to dbms_lock.
    execute immediate
        'begin :1 := sys.dbms_lock.request(id => :2, lockmode => sys.dbms_lock.x_mode,'
        || ' timeout => 1, release_on_commit => false); end;'
        using out v_result, in p_lock;
    -- 0 means granted, 1 means timed out, and 4 means that a call that was broken off has left the
    -- lock with this session. The other results come at once, so sleep here: waiting goes on
    -- without a leader.
    if v_result not in (0, 1, 4) then
        dbms_session.sleep(1);
    end if;
    return v_result in (0, 4);
end internal_try_lead_waiters;
