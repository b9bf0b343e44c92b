create or replace function rowq.release(
    p_queue_name    text,
    p_claim_id      bigint,
    p_message_ids   bigint[] default null,
    p_delay_seconds double precision default null
)
returns table (message_id bigint, outcome text, due_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   release
-- version   1
-- purpose   Return messages without spending the attempt: to the front of their priority, or after a delay.
-- promise   P08 P34 P37 P38
-- locks     the claim row first; then new ready, delayed and history rows; for cancelled messages
--           as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_queue    rowq.queue;
    v_taken    record;
    v_lanes    smallint[];
    v_attempts smallint[];
    v_errors   text[];
    v_now      timestamp with time zone;
    v_due_at   timestamp with time zone;
    v_outcome  text := 'released';
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

    if p_delay_seconds > 0 then
        -- Read the clock after internal_pop_claimed, which assigns the transaction id:
        -- internal_move_floor relies on this order.
        v_now := clock_timestamp();
        v_due_at := v_now + make_interval(secs => p_delay_seconds);
        v_outcome := 'snoozed';
    end if;
    if v_queue.history_days > 0 then
        perform rowq.internal_push_history(
            v_queue.queue_id, p_claim_id, v_taken.o_worker_name, v_taken.o_leased_at,
            v_taken.o_message_ids, v_taken.o_attempts, v_outcome
        );
    end if;
    if v_taken.o_message_ids <> '{}' then
        select array_agg((u.lane / 2 * 2 + (v_due_at is not null)::int)::smallint order by u.place),
               array_agg((u.attempt - 1)::smallint order by u.place),
               array_agg(u.last_error order by u.place)
        into v_lanes, v_attempts, v_errors
        from unnest(v_taken.o_lanes, v_taken.o_attempts, v_taken.o_errors)
            with ordinality u (lane, attempt, last_error, place);

        if v_due_at is null then
            perform rowq.internal_push_ready(
                v_queue.queue_id, v_lanes, v_taken.o_message_ids, v_attempts, v_errors
            );
        else
            perform rowq.internal_push_delayed(
                v_queue.queue_id, v_lanes, v_taken.o_message_ids, v_attempts,
                array_fill(v_due_at, array[cardinality(v_lanes)]), v_now, v_errors
            );
        end if;
    end if;

    return query
    select u.message_id,
           case
               when u.message_id = any (v_taken.o_message_ids) then v_outcome
               when u.message_id = any (v_taken.o_cancel_ids) then 'cancelled'
               else 'stale'
           end,
           case when u.message_id = any (v_taken.o_message_ids) then v_due_at end
    from unnest(
        coalesce(p_message_ids, v_taken.o_message_ids || v_taken.o_cancel_ids)
    ) u (message_id);
end;
$$;
