drop procedure if exists rowq.internal_begin_work;

delimiter //
create procedure rowq.internal_begin_work(out p_owns_transaction boolean)
sql security definer
modifies sql data
begin
-- routine   internal_begin_work
-- purpose   Open a read committed transaction, or a savepoint in the one that the caller has.
-- promise   P15 P17
-- differs   only engines whose procedures open transactions need it
    declare v_moment double default @@timestamp;
    -- Where a transaction is open, "set transaction" fails with 1568 and so finds it, but "start
    -- transaction" would commit it.
    declare continue handler for 1568 set p_owns_transaction = false;

    /*!80000
    -- On MySQL only the next insert takes insert_id away again; set to 0, it is the number 0.
    -- Refuse it before a transaction is opened that nobody would end.
    if @@insert_id <> 0 then
        call rowq.internal_refuse(
            'insert_id is set in this session, and MySQL cannot unset it: connect again'
        );
    end if;
    */

    -- With autocommit off, the transaction belongs to the caller and has the isolation level of the
    -- session.
    set p_owns_transaction = @@autocommit;
    if p_owns_transaction then
        set transaction isolation level read committed;
    end if;

    -- Reading these variables costs less than setting them, and few sessions need that. A statement
    -- that sql_safe_updates refuses is left to internal_roll_back. If @@timestamp does not move on,
    -- the caller has set it.
    if /*M!100600 @@insert_id <> 0 or */
       @@timestamp = v_moment
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
