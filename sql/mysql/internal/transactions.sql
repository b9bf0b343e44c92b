-- Transactions: the transaction that a call runs in.
--
-- A call joins the caller's open transaction behind a savepoint, and never commits it. With
-- autocommit and no open transaction it opens a READ COMMITTED one, commits it, and retries after a
-- deadlock. Session variables change what statements do, so each call sets those it depends on and
-- restores them.
--
--   create_queue, alter_queue, drop_queue, ... -> begin_work -> set_session
--   create_queue, purge_queue, peek, ... -> set_session -> restore_session
--   create_queue, alter_queue, drop_queue, ... -> restore_session, commit_work
--   create_queue, alter_queue, drop_queue, ... -> roll_back -> set_session, restore_session
--
-- No table.

drop procedure if exists rowq.internal_begin_work;

delimiter //
create procedure rowq.internal_begin_work(out p_owns_transaction boolean)
sql security definer
modifies sql data
begin
-- purpose   Open a read committed transaction, or a savepoint in the caller's.
    declare v_clock double default @@timestamp;
    -- Inside a transaction "set transaction" fails with 1568; "start transaction" would commit it.
    declare continue handler for 1568 set p_owns_transaction = false;

    /*!80000
    -- On MySQL only the next insert unsets insert_id; 0 is a value. Refuse it before opening a
    -- transaction that no session would end.
    if @@insert_id <> 0 then
        call rowq.internal_refuse(
            'insert_id is set in this session and cannot be unset; reconnect'
        );
    end if;
    */

    -- With autocommit off, the transaction and its isolation level are the caller's.
    set p_owns_transaction = @@autocommit;
    if p_owns_transaction then
        set transaction isolation level read committed;
    end if;

    -- Reading these variables costs less than setting them, and few sessions need it set.
    -- internal_roll_back handles sql_safe_updates. If @@timestamp stands still, the caller has set
    -- it.
    if /*M!100600 @@insert_id <> 0 or */
       @@timestamp = v_clock
       or not @@unique_checks
       or not @@sql_big_selects
       or @@sort_buffer_size < 262144
       /*M!100600 or @@group_concat_max_len < 1048576 */
       /*M!100600 or @@tmp_disk_table_size < 1073741824 */
       /*M!100600 or @@skip_replication */
       /*M!110602 or (@@innodb_snapshot_isolation and not p_owns_transaction) */
    then
        call rowq.internal_set_session(v_clock);
    end if;

    if p_owns_transaction then
        start transaction;
    else
        savepoint rowq_call;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_set_session;

delimiter //
create procedure rowq.internal_set_session(p_clock double)
sql security definer
modifies sql data
begin
-- purpose   Set the session variables that the routines depend on; save the caller's values.
-- differs   only here a session can set the clock, or the ids of new rows
--
-- p_clock is @@timestamp at the start of the call.
    -- The caller's values are in session variables until internal_restore_session. A killed call
    -- leaves them there: restore them before reading the values again.
    if @rowq_pinned then
        call rowq.internal_restore_session();
        set p_clock = @@timestamp;
    end if;
    set @rowq_pinned = true,
        /*M!100600 @rowq_insert_id = @@insert_id, */
        @rowq_increment = @@auto_increment_increment,
        @rowq_offset = @@auto_increment_offset,
        @rowq_unique_checks = @@unique_checks,
        @rowq_safe_updates = @@sql_safe_updates,
        @rowq_big_selects = @@sql_big_selects,
        @rowq_sort_buffer_size = @@sort_buffer_size,
        /*M!100600 @rowq_max_error_count = @@max_error_count, */
        /*M!100600 @rowq_group_concat_max_len = @@group_concat_max_len, */
        /*M!100600 @rowq_tmp_disk_table_size = @@tmp_disk_table_size, */
        /*M!100600 @rowq_regex_flags = @@default_regex_flags, */
        /*M!100600 @rowq_skip_replication = @@skip_replication, */
        /*M!110602 @rowq_snapshot_isolation = @@innodb_snapshot_isolation, */
        /*!80000 @rowq_stats_expiry = @@information_schema_stats_expiry, */
        @rowq_timestamp = null;

    -- Without unique checks InnoDB locks an empty table for the first session that inserts. A sort
    -- or temporary table without enough memory raises an error that no handler catches, which would
    -- leave the transaction open. MySQL requires a privilege for max_error_count, which the
    -- routines' account lacks, and by default shows table statistics that are a day old. Results of
    -- aggregates are truncated to max_allowed_packet in any case.
    set session unique_checks = 1,
        sql_safe_updates = 0,
        sql_big_selects = 1,
        /*M!100600 group_concat_max_len = greatest(@@group_concat_max_len, @@max_allowed_packet), */
        /*M!100600 tmp_disk_table_size = greatest(@@tmp_disk_table_size, 1073741824), */
        /*M!100600 default_regex_flags = '', */
        /*M!100600 max_error_count = cast(greatest(@@max_error_count, 64) as unsigned), */
        /*M!110602 innodb_snapshot_isolation = 0, */
        /*!80000 information_schema_stats_expiry = 0, */
        sort_buffer_size = cast(greatest(@@sort_buffer_size, 262144) as unsigned);

    -- Set these one by one, and only if they differ: some versions require a privilege. insert_id
    -- is the id of the next inserted row. A cluster sets the other two globally, so use the global
    -- values.
    /*M!100600
    if @@insert_id <> 0 then
        set session insert_id = 0;
    end if;
    */
    if @@auto_increment_increment <> @@global.auto_increment_increment then
        set session auto_increment_increment = @@global.auto_increment_increment;
    end if;
    if @@auto_increment_offset <> @@global.auto_increment_offset then
        set session auto_increment_offset = @@global.auto_increment_offset;
    end if;
    /*M!100600
    if @@skip_replication then
        set session skip_replication = 0;
    end if;
    */

    -- A clock may return the same time twice, but not for 20 ms: then the caller has set it.
    if @@timestamp = p_clock then
        do sleep(0.02);
        if @@timestamp = p_clock then
            set @rowq_timestamp = p_clock;
            set session timestamp = default;
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_restore_session;

delimiter //
create procedure rowq.internal_restore_session()
sql security definer
modifies sql data
begin
-- purpose   Restore the session variables that internal_set_session has saved.
    if @rowq_pinned then
        set @rowq_pinned = null;
        set session unique_checks = @rowq_unique_checks,
            sql_safe_updates = @rowq_safe_updates,
            sql_big_selects = @rowq_big_selects,
            /*M!100600 max_error_count = @rowq_max_error_count, */
            /*M!100600 group_concat_max_len = @rowq_group_concat_max_len, */
            /*M!100600 tmp_disk_table_size = @rowq_tmp_disk_table_size, */
            /*M!100600 default_regex_flags = @rowq_regex_flags, */
            /*M!110602 innodb_snapshot_isolation = @rowq_snapshot_isolation, */
            /*!80000 information_schema_stats_expiry = @rowq_stats_expiry, */
            sort_buffer_size = @rowq_sort_buffer_size;
        /*M!100600
        if @rowq_insert_id <> 0 then
            set session insert_id = @rowq_insert_id;
        end if;
        */
        if @@auto_increment_increment <> @rowq_increment then
            set session auto_increment_increment = @rowq_increment;
        end if;
        if @@auto_increment_offset <> @rowq_offset then
            set session auto_increment_offset = @rowq_offset;
        end if;
        /*M!100600
        if @rowq_skip_replication then
            set session skip_replication = 1;
        end if;
        */
        if @rowq_timestamp is not null then
            set session timestamp = @rowq_timestamp;
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_commit_work;

delimiter //
create procedure rowq.internal_commit_work(p_owns_transaction boolean)
sql security definer
modifies sql data
begin
-- purpose   Commit the transaction, or release the savepoint, of internal_begin_work.
-- commits   the transaction that internal_begin_work opened, never the caller's
    if p_owns_transaction then
        commit and no chain no release;
    else
        release savepoint rowq_call;
    end if;
end//
delimiter ;

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
-- purpose   Roll back to internal_begin_work; if p_tries_left stays above 0, retry.
-- commits   never
    -- A deadlock rolls back the transaction with its savepoint; "rollback to" then fails with 1305.
    declare continue handler for 1305 begin end;

    if p_owns_transaction then
        rollback and no chain no release;
    elseif p_owns_transaction is not null then
        rollback to savepoint rowq_call;
    end if;

    -- Retry after a deadlock (1213), or if a row has changed since it was read (1020).
    if p_owns_transaction and p_errno in (1213, 1020) then
        set p_tries_left = p_tries_left - 1;
    elseif p_errno = 1175 and @rowq_pinned is null then
        -- sql_safe_updates has refused a statement (1175): switch it off and retry.
        call rowq.internal_set_session(@@timestamp);
        set p_tries_left = p_tries_left - 1;
    else
        set p_tries_left = 0;
    end if;
    if p_tries_left = 0 and @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
