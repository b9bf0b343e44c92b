create or replace function rowq.internal_require_queue(p_queue_name text)
returns rowq.queue
language plpgsql
as $$
-- routine   internal_require_queue
-- purpose   Return the settings of a queue; raise an error if it does not exist.
-- promise   P15
-- errors    RQ701 RQ711
declare
    v_queue rowq.queue;
begin
    select q.part_id, q.queue_name, q.lease_seconds, q.max_attempts, q.backoff_base_seconds,
           q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
           q.max_body_length, q.group_limit, q.group_after_dead, q.group_pause_seconds,
           q.has_recheck, q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds,
           q.history_days, q.paused_at, q.created_at
    into v_queue
    from rowq.queue q
    where q.queue_name = p_queue_name;

    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    return v_queue;
end;
$$;
