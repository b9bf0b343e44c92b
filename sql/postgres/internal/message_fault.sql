create or replace function rowq.internal_message_fault(
    p_body                text,
    p_body_binary         bytea,
    p_message_type        text,
    p_headers             jsonb,
    p_priority            integer,
    p_delay_seconds       double precision,
    p_run_at              timestamp with time zone,
    p_dedup_key           text,
    p_max_attempts        integer,
    p_group_key           text,
    p_predecessor_ids     bigint[],
    p_on_predecessor_dead text,
    p_expire_seconds      double precision
)
returns text
language plpgsql
as $$
-- routine   internal_message_fault
-- purpose   Return what is wrong with the arguments of enqueue; null means nothing.
-- promise   P15
begin
    return case
        when p_priority is null or p_priority not between 0 and 9
            then 'priority must be between 0 and 9, got ' || coalesce(p_priority::text, 'null')
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary exclude each other'
        when char_length(p_message_type) > 200
            then 'message_type is longer than 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at exclude each other'
        when p_delay_seconds not between 0 and 315360000
            then format('delay_seconds must be between 0 and 315360000, got %s', p_delay_seconds)
        when p_run_at > clock_timestamp() + interval '3650 days' or not isfinite(p_run_at)
            then 'run_at must be a moment within the next ten years'
        when char_length(p_dedup_key) not between 1 and 200
            then 'dedup_key must be 1 to 200 characters'
        when starts_with(p_dedup_key, 'schedule:')
            then 'dedup_key must not begin with schedule:, which is for schedules'
        when char_length(p_group_key) not between 1 and 200
            then 'group_key must be 1 to 200 characters'
        when not rowq.internal_is_id_list(p_predecessor_ids)
            then 'predecessor_ids must be a flat list of at most 10000 ids, no null'
        when p_on_predecessor_dead not in ('hold', 'continue', 'fail')
            then 'on_predecessor_dead must be hold, continue or fail, got '
                || left(p_on_predecessor_dead, 100)
        when p_max_attempts not between 1 and 10000
            then format('max_attempts must be between 1 and 10000, got %s', p_max_attempts)
        when p_expire_seconds not between 0.001 and 315360000
            then format('expire_seconds must be between 0.001 and 315360000, got %s',
                        p_expire_seconds)
        when p_headers is not null
            then rowq.internal_json_fault(
                'headers', p_headers, 'object', 'strict $.**{20}', 65536
            )
    end;
end;
$$;
