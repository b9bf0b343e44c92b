drop procedure if exists rowq.internal_pin_session;

delimiter //
create procedure rowq.internal_pin_session(p_moment double)
sql security definer
modifies sql data
begin
-- routine   internal_pin_session
-- purpose   Set the variables of the session that the routines depend on; p_moment was its time just before.
-- promise   P01 P03 P12
-- differs   elsewhere no session can set the clock, or the numbers that rows get
    -- The caller's values are kept in variables of the session until internal_unpin_session. A
    -- killed call leaves them there, so give them back before the values are read again.
    if @rowq_pinned then
        call rowq.internal_unpin_session();
        set p_moment = @@timestamp;
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
    -- or a temporary table with too little room fails with an error that no handler sees, so that
    -- the transaction would stay open. MySQL asks for a right to set max_error_count, which the
    -- account that the routines run as has not, and shows numbers of tables that are a day old
    -- unless told not to. What aggregates return is cut to max_allowed_packet in any case.
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

    -- Set these one by one and only where they differ, because some versions ask for a right to set
    -- them. insert_id would be the number of the next row that is inserted. A cluster sets the
    -- other two for all its sessions, so take the global values.
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

    -- A clock may show the same moment twice, but not for 20 milliseconds: then the caller has set
    -- it.
    if @@timestamp = p_moment then
        do sleep(0.02);
        if @@timestamp = p_moment then
            set @rowq_timestamp = p_moment;
            set session timestamp = default;
        end if;
    end if;
end//
delimiter ;
