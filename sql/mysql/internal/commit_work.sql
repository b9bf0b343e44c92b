drop procedure if exists rowq.internal_commit_work;

delimiter //
create procedure rowq.internal_commit_work(p_owns_transaction boolean)
sql security definer
modifies sql data
begin
-- routine   internal_commit_work
-- version   1
-- purpose   End what internal_begin_work opened.
-- promise   P17
-- locks     none
-- commits   the transaction that internal_begin_work opened, never the caller's
-- errors    none
-- differs   only engines whose procedures open transactions need it
    if p_owns_transaction then
        commit and no chain no release;
    else
        release savepoint rowq_call;
    end if;
end//
delimiter ;
