drop procedure if exists rowq.internal_roll_back;

delimiter //
create procedure rowq.internal_roll_back(
    p_owns_transaction boolean,
    p_errno int,
    inout p_tries_left int
)
sql security definer
modifies sql data
begin
-- routine   internal_roll_back
-- version   1
-- purpose   Take back what was done since internal_begin_work; p_tries_left above 0 asks to do it again.
-- promise   P15 P17
-- locks     none
-- commits   never; rolls back to where internal_begin_work was called
-- errors    none
-- differs   only engines whose procedures open transactions need it
    -- After a deadlock the whole transaction is gone, the savepoint with it (1305).
    declare continue handler for 1305 begin end;

    if p_owns_transaction then
        rollback and no chain no release;
    elseif p_owns_transaction is not null then
        rollback to savepoint rowq_call;
    end if;

    -- 1213 deadlock, 1020 changed since read: nobody is to blame, and nothing has happened.
    if p_owns_transaction and p_errno in (1213, 1020) then
        set p_tries_left = p_tries_left - 1;
    elseif p_errno = 1175 and @rowq_pinned is null then
        -- Refused because of sql_safe_updates.
        call rowq.internal_pin_session(@@timestamp);
        set p_tries_left = p_tries_left - 1;
    else
        set p_tries_left = 0;
    end if;
    if p_tries_left = 0 and @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;
