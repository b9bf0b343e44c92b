drop procedure if exists rowq.internal_begin_work;

delimiter //
create procedure rowq.internal_begin_work(out p_owns_transaction boolean)
sql security definer
modifies sql data
begin
-- routine   internal_begin_work
-- version   1
-- purpose   Open a read committed transaction, or a savepoint in the one that the caller has.
-- promise   P15 P17
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   only engines whose procedures open transactions need it
    declare v_moment double default @@timestamp;
    -- Refused with 1568 where a transaction is open; a start transaction would commit it.
    declare continue handler for 1568 set p_owns_transaction = false;

    -- Without autocommit the transaction is the caller's, at the level of the session.
    set p_owns_transaction = @@autocommit;
    if p_owns_transaction then
        set transaction isolation level read committed;
    end if;

    -- Looking costs less than setting, and few sessions need it; what sql_safe_updates refuses is
    -- left to internal_roll_back. A moment that does not pass is one that the caller has set.
    if @@insert_id <> 0
       or @@timestamp = v_moment
       or not @@unique_checks
       or not @@sql_big_selects
       or @@sort_buffer_size < 262144
       /*M!100600 or @@group_concat_max_len < 1048576 */
       /*M!100600 or @@tmp_disk_table_size < 1073741824 */
       /*M!100600 or @@skip_replication */
       /*M!110602 or (@@innodb_snapshot_isolation and not p_owns_transaction) */
    then
        call rowq.internal_pin_session(v_moment);
    end if;

    if p_owns_transaction then
        start transaction;
    else
        savepoint rowq_call;
    end if;
end//
delimiter ;
