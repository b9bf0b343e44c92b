drop procedure if exists rowq.internal_check_settings;

delimiter //
create procedure rowq.internal_check_settings(
    p_queue_name longtext,
    p_lease_seconds int,
    p_max_attempts int,
    p_backoff_base_seconds double,
    p_backoff_factor double,
    p_backoff_cap_seconds double,
    p_backoff_jitter double,
    p_archive_days int,
    p_max_body_length int,
    p_group_limit int,
    p_group_after_dead longtext,
    p_group_pause_seconds double,
    p_max_leased int,
    p_rate_limit int,
    p_rate_seconds double,
    p_result_seconds double,
    p_history_days int
)
sql security definer
modifies sql data
begin
-- routine   internal_check_settings
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- promise   P15
-- errors    RQ711
    call rowq.internal_check_name('queue_name', p_queue_name);
    call rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    call rowq.internal_check_range('max_attempts', p_max_attempts, 1, 10000);
    call rowq.internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    call rowq.internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    call rowq.internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    call rowq.internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    call rowq.internal_check_range('archive_days', p_archive_days, 0, 36500);
    call rowq.internal_check_range('max_body_length', p_max_body_length, 1, 33554432);
    call rowq.internal_check_range('group_limit', p_group_limit, 1, 100);
    call rowq.internal_check_range('group_pause_seconds', p_group_pause_seconds, 0, 86400);
    if cast(p_group_after_dead as binary) not in ('continue', 'hold') then
        call rowq.internal_refuse(
            concat(
                'group_after_dead must be continue or hold, got ', left(p_group_after_dead, 40)
            )
        );
    end if;
    call rowq.internal_check_range('max_leased', p_max_leased, 0, 100000);
    call rowq.internal_check_range('rate_limit', p_rate_limit, 0, 100000);
    call rowq.internal_check_range('rate_seconds', p_rate_seconds, 0.1, 86400);
    call rowq.internal_check_range('result_seconds', p_result_seconds, 0, 31536000);
    call rowq.internal_check_range('history_days', p_history_days, 0, 36500);
end//
delimiter ;
