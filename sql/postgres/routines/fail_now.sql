create or replace function rowq.fail_now(
    p_queue_name  text,
    p_claim_id    bigint,
    p_message_ids bigint[] default null,
    p_error       text default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   fail_now
-- version   1
-- purpose   Declare messages dead without another attempt.
-- promise   P08 P10 P34 P37
-- locks     the claim row first; then new dead and history rows and dedup rows; for cancelled
--           messages as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_taken record;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_taken := rowq.internal_pop_claimed(v_queue.queue_id, p_claim_id, p_message_ids);
    if v_taken.o_cancel_ids is not null then
        v_taken := rowq.internal_end_cancelled(
            v_queue.queue_id, v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts,
            v_taken.o_errors, v_taken.o_cancel_ids, p_claim_id, v_taken.o_worker_name,
            v_taken.o_leased_at
        );
    end if;

    if v_queue.history_days > 0 then
        perform rowq.internal_push_history(
            v_queue.queue_id, p_claim_id, v_taken.o_worker_name, v_taken.o_leased_at,
            v_taken.o_message_ids, v_taken.o_attempts, 'dead', p_error
        );
    end if;
    if v_taken.o_message_ids <> '{}' then
        perform rowq.internal_push_dead(
            v_queue.queue_id, v_taken.o_lanes, v_taken.o_message_ids, v_taken.o_attempts,
            array_fill(p_error, array[cardinality(v_taken.o_message_ids)])
        );
    end if;

    return query
    select u.message_id,
           case
               when u.message_id = any (v_taken.o_message_ids) then 'dead'
               when u.message_id = any (v_taken.o_cancel_ids) then 'cancelled'
               else 'stale'
           end
    from unnest(
        coalesce(p_message_ids, v_taken.o_message_ids || v_taken.o_cancel_ids)
    ) u (message_id);
end;
$$;
