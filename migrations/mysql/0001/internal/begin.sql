drop procedure if exists rowq.internal_begin;

delimiter //
create procedure rowq.internal_begin(out p_is_own boolean)
sql security definer
modifies sql data
begin
-- routine   internal_begin
-- version   1
-- purpose   Open a read committed transaction, or a savepoint in the one that the caller has.
-- promise   P15 P17
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   only engines whose procedures open transactions need it
    -- Refused with 1568 where a transaction is open; a start transaction would commit it.
    declare continue handler for 1568 set p_is_own = false;
    set p_is_own = true;
    set transaction isolation level read committed;

    if p_is_own and @@autocommit = 1 then
        start transaction;
    else
        set p_is_own = false;
        savepoint rowq_call;
    end if;

    -- MariaDB cuts JSON arrays to this length, as it does group_concat.
    if @@group_concat_max_len < 1048576 then
        set session group_concat_max_len = 1048576;
    end if;
end//
delimiter ;
