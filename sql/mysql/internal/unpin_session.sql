drop procedure if exists rowq.internal_unpin_session;

delimiter //
create procedure rowq.internal_unpin_session()
sql security definer
modifies sql data
begin
-- routine   internal_unpin_session
-- purpose   Give the session back the values that internal_pin_session has put aside.
-- promise   P17
-- differs   elsewhere nothing is pinned
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
