create or replace function rowq.alter_queue(
    p_queue_name           text,
    p_lease_seconds        integer default null,
    p_max_attempts         integer default null,
    p_backoff_base_seconds double precision default null,
    p_backoff_factor       double precision default null,
    p_backoff_cap_seconds  double precision default null,
    p_backoff_jitter       double precision default null,
    p_archive_days         integer default null,
    p_max_body_length      integer default null,
    p_group_limit          integer default null,
    p_group_after_dead     text default null,
    p_group_pause_seconds  double precision default null,
    p_max_leased           integer default null,
    p_rate_limit           integer default null,
    p_rate_seconds         double precision default null,
    p_result_seconds       double precision default null,
    p_history_days         integer default null
)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   alter_queue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting unchanged.
-- promise   P15
-- locks     the queue row; new deferred rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
begin
    perform rowq.internal_check_settings(
        p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
        p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
        p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
        p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds, p_history_days
    );
    v_queue := rowq.internal_require_queue(p_queue_name);

    update rowq.queue q
    set lease_seconds        = coalesce(p_lease_seconds, q.lease_seconds),
        max_attempts         = coalesce(p_max_attempts, q.max_attempts),
        backoff_base_seconds = coalesce(p_backoff_base_seconds, q.backoff_base_seconds),
        backoff_factor       = coalesce(p_backoff_factor, q.backoff_factor),
        backoff_cap_seconds  = coalesce(p_backoff_cap_seconds, q.backoff_cap_seconds),
        backoff_jitter       = coalesce(p_backoff_jitter, q.backoff_jitter),
        archive_days         = coalesce(p_archive_days, q.archive_days),
        max_body_length      = coalesce(p_max_body_length, q.max_body_length),
        group_limit          = coalesce(p_group_limit, q.group_limit),
        group_after_dead     = coalesce(p_group_after_dead, q.group_after_dead),
        group_pause_seconds  = coalesce(p_group_pause_seconds, q.group_pause_seconds),
        max_leased           = coalesce(p_max_leased, q.max_leased),
        rate_limit           = coalesce(p_rate_limit, q.rate_limit),
        rate_seconds         = coalesce(p_rate_seconds, q.rate_seconds),
        result_seconds       = coalesce(p_result_seconds, q.result_seconds),
        history_days         = coalesce(p_history_days, q.history_days)
    where q.queue_name = p_queue_name;
    if not found then
        -- The queue was dropped while this call waited for its row.
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    if p_group_limit > v_queue.group_limit then
        perform rowq.internal_defer_group_checks(v_queue.queue_id);
    end if;

    return query select p_queue_name, 'altered';
end;
$$;
