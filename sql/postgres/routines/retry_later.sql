create or replace function rowq.retry_later(
    p_queue_name    text,
    p_claim_id      bigint,
    p_message_ids   bigint[] default null,
    p_delay_seconds double precision default null,
    p_error         text default null
)
returns table (message_id bigint, outcome text, due_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   retry_later
-- version   1
-- purpose   Return messages for another attempt after a delay; without an attempt left they are dead.
-- promise   P08 P10 P34 P37 P47
-- locks     the claim row first; then new delayed, ready, dead or history rows; for cancelled
--           messages as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_queue    rowq.queue;
    v_taken    record;
    v_now      timestamp with time zone;
    v_lanes    smallint[];
    v_ids      bigint[];
    v_attempts smallint[];
    v_due_ats  timestamp with time zone[];
    v_dead     record;
begin
    perform rowq.internal_check_range('delay_seconds', p_delay_seconds, 0, 315360000);
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_taken := rowq.internal_pop_claimed(v_queue.queue_id, p_claim_id, p_message_ids);
    if v_taken.o_cancel_ids is not null then
        v_taken := rowq.internal_end_cancelled(
            v_queue.queue_id, v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts,
            v_taken.o_errors, v_taken.o_cancel_ids, p_claim_id, v_taken.o_worker_name,
            v_taken.o_leased_at
        );
    end if;

    -- Read the clock after internal_pop_claimed, which assigns the transaction id:
    -- internal_move_floor relies on this order.
    v_now := clock_timestamp();
    select array_agg((u.lane / 2 * 2 + 1)::smallint),
           array_agg(u.message_id),
           array_agg(u.attempt),
           array_agg(v_now + make_interval(secs => coalesce(
               p_delay_seconds,
               least(
                   v_queue.backoff_cap_seconds,
                   v_queue.backoff_base_seconds
                   * power(v_queue.backoff_factor, least(u.attempt - 1, 60))
               ) * (1 - v_queue.backoff_jitter * random())
           )))
    into v_lanes, v_ids, v_attempts, v_due_ats
    from rowq.internal_with_max_attempts(
        v_queue.queue_id, v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts,
        v_queue.max_attempts
    ) u
    where u.attempt < u.allowed;

    select array_agg(u.lane) lanes, array_agg(u.message_id) ids, array_agg(u.attempt) attempts
    into v_dead
    from unnest(v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts)
        u (message_id, lane, attempt)
    where u.message_id <> all (coalesce(v_ids, '{}'));

    if v_queue.history_days > 0 then
        perform rowq.internal_push_history(
            v_queue.queue_id, p_claim_id, v_taken.o_worker_name, v_taken.o_leased_at,
            v_taken.o_message_ids, v_taken.o_attempts, 'retrying', p_error, v_dead.ids
        );
    end if;
    if v_ids is not null then
        perform rowq.internal_push_delayed(
            v_queue.queue_id, v_lanes, v_ids, v_attempts, v_due_ats, v_now,
            array_fill(left(p_error, 2000), array[cardinality(v_ids)])
        );
    end if;
    if v_dead.ids is not null then
        perform rowq.internal_push_dead(
            v_queue.queue_id, v_dead.lanes, v_dead.ids, v_dead.attempts,
            array_fill(p_error, array[cardinality(v_dead.ids)])
        );
    end if;

    return query
    select u.message_id,
           case
               when u.message_id = any (v_ids) then 'retrying'
               when u.message_id = any (v_dead.ids) then 'dead'
               when u.message_id = any (v_taken.o_cancel_ids) then 'cancelled'
               else 'stale'
           end,
           v_due_ats[array_position(v_ids, u.message_id)]
    from unnest(
        coalesce(p_message_ids, v_taken.o_message_ids || v_taken.o_cancel_ids)
    ) u (message_id);
end;
$$;
