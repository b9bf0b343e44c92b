function internal_try_lead_waiters(p_lock in number)
return boolean
is
-- routine   internal_try_lead_waiters
-- version   1
-- purpose   Wait for a second at most to be the one waiter of a queue that looks for all.
-- promise   none
-- locks     the lock p_lock, kept until internal_stop_leading_waiters or the session's end
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   this engine's own
    v_result number;
begin
    -- By text, so that the package compiles where the owner has no right to dbms_lock.
    execute immediate
        'begin :1 := sys.dbms_lock.request(id => :2, lockmode => sys.dbms_lock.x_mode,'
        || ' timeout => 1, release_on_commit => false); end;'
        using out v_result, in p_lock;
    -- 0 granted, 1 timed out, 4 left behind in this session by a call that was broken off. Others
    -- come at once, and waiting goes on without a leader.
    if v_result not in (0, 1, 4) then
        dbms_session.sleep(1);
    end if;
    return v_result in (0, 4);
end internal_try_lead_waiters;
