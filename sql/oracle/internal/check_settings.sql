procedure internal_check_settings(
    p_queue_name           in varchar2,
    p_lease_seconds        in number,
    p_max_attempts         in number,
    p_backoff_base_seconds in number,
    p_backoff_factor       in number,
    p_backoff_cap_seconds  in number,
    p_backoff_jitter       in number,
    p_archive_days         in number,
    p_max_body_length      in number,
    p_group_limit          in number,
    p_group_after_dead     in varchar2,
    p_group_pause_seconds  in number,
    p_max_leased           in number,
    p_rate_limit           in number,
    p_rate_seconds         in number,
    p_result_seconds       in number,
    p_history_days         in number
)
is
-- routine   internal_check_settings
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- promise   P15
-- errors    RQ711
begin
    internal_check_name('queue_name', p_queue_name);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    internal_check_whole('max_attempts', p_max_attempts, 1, 10000);
    internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    internal_check_whole('archive_days', p_archive_days, 0, 36500);
    internal_check_whole('max_body_length', p_max_body_length, 1, 33554432);
    internal_check_whole('group_limit', p_group_limit, 1, 100);
    -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
    if utl_raw.cast_to_raw(p_group_after_dead) not in (
        utl_raw.cast_to_raw('continue'), utl_raw.cast_to_raw('hold')
    ) then
        internal_refuse(
            'group_after_dead must be continue or hold, got ' || substr(p_group_after_dead, 1, 100)
        );
    end if;
    internal_check_range('group_pause_seconds', p_group_pause_seconds, 0, 86400);
    internal_check_whole('max_leased', p_max_leased, 0, 100000);
    internal_check_whole('rate_limit', p_rate_limit, 0, 100000);
    internal_check_range('rate_seconds', p_rate_seconds, 0.1, 86400);
    internal_check_range('result_seconds', p_result_seconds, 0, 31536000);
    internal_check_whole('history_days', p_history_days, 0, 36500);
end internal_check_settings;
