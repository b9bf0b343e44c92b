create or replace function rowq.internal_check_settings(
    p_queue_name           text,
    p_lease_seconds        integer,
    p_max_attempts         integer,
    p_backoff_base_seconds double precision,
    p_backoff_factor       double precision,
    p_backoff_cap_seconds  double precision,
    p_backoff_jitter       double precision,
    p_archive_days         integer,
    p_max_body_length      integer,
    p_group_limit          integer,
    p_group_after_dead     text,
    p_group_pause_seconds  double precision,
    p_max_leased           integer,
    p_rate_limit           integer,
    p_rate_seconds         double precision,
    p_result_seconds       double precision,
    p_history_days         integer
)
returns void
language plpgsql
as $$
-- routine   internal_check_settings
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- promise   P15
-- errors    RQ711
begin
    perform rowq.internal_check_name('queue_name', p_queue_name);
    perform rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    perform rowq.internal_check_range('max_attempts', p_max_attempts, 1, 10000);
    perform rowq.internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    perform rowq.internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    perform rowq.internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    perform rowq.internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    perform rowq.internal_check_range('archive_days', p_archive_days, 0, 36500);
    perform rowq.internal_check_range('max_body_length', p_max_body_length, 1, 33554432);
    perform rowq.internal_check_range('group_limit', p_group_limit, 1, 100);
    perform rowq.internal_check_range('group_pause_seconds', p_group_pause_seconds, 0, 86400);
    if p_group_after_dead not in ('continue', 'hold') then
        raise exception
            'RQ711 invalid_argument: group_after_dead must be continue or hold, got %',
            left(p_group_after_dead, 100)
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range('max_leased', p_max_leased, 0, 100000);
    perform rowq.internal_check_range('rate_limit', p_rate_limit, 0, 100000);
    perform rowq.internal_check_range('rate_seconds', p_rate_seconds, 0.1, 86400);
    perform rowq.internal_check_range('result_seconds', p_result_seconds, 0, 31536000);
    perform rowq.internal_check_range('history_days', p_history_days, 0, 36500);
end;
$$;
