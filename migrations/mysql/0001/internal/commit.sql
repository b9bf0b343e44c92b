drop procedure if exists rowq.internal_commit;

delimiter //
create procedure rowq.internal_commit(p_is_own boolean)
sql security definer
modifies sql data
begin
-- routine   internal_commit
-- version   1
-- purpose   End what internal_begin opened.
-- promise   P17
-- locks     none
-- commits   the transaction that internal_begin opened, never the caller's
-- errors    none
-- differs   only engines whose procedures open transactions need it
    if p_is_own then
        commit and no chain no release;
    else
        release savepoint rowq_call;
    end if;
end//
delimiter ;
