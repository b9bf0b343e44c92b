create or replace function rowq.get_history(p_queue_name text, p_message_id bigint)
returns table (
    attempt     integer,
    worker_name text,
    leased_at   timestamp with time zone,
    ended_at    timestamp with time zone,
    outcome     text,
    error       text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   get_history
-- version   1
-- purpose   Return the attempts of a message, oldest first, including the current lease.
-- promise   P37
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_lease record;
    v_row   record;
begin
    if p_message_id is null then
        raise exception 'RQ711 invalid_argument: message_id is required'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- Read the current lease first: an attempt that ends after this read is in the history.
    v_lease := rowq.internal_locate_messages(v_queue.queue_id, p_message_id);

    for v_row in
        select h.attempt, h.worker_name, h.leased_at, h.ended_at, h.outcome, h.error, h.claim_id
        from rowq.history h
        where h.queue_id = v_queue.queue_id
          and h.message_id = p_message_id
        order by h.ended_at, h.claim_id
    loop
        attempt := v_row.attempt;
        worker_name := v_row.worker_name;
        leased_at := v_row.leased_at;
        ended_at := v_row.ended_at;
        outcome := v_row.outcome;
        error := v_row.error;
        return next;
        if v_row.claim_id = v_lease.claim_id then
            v_lease.claim_id := null;
        end if;
    end loop;

    if v_lease.claim_id is not null then
        return query
        select v_lease.attempt::integer, v_lease.worker_name, v_lease.leased_at,
               null::timestamp with time zone, null::text, null::text;
    end if;
end;
$$;
