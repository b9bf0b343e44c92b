create or replace function rowq.complete_and_dequeue(
    p_queue_name    text,
    p_claim_id      bigint,
    p_message_ids   bigint[] default null,
    p_results       jsonb default null,
    p_batch_size    integer default 1,
    p_worker_name   text default null,
    p_lease_seconds integer default null
)
returns table (
    outcome      text,
    claim_id     bigint,
    message_id   bigint,
    attempt      integer,
    message_type text,
    headers      jsonb,
    body         text,
    body_binary  bytea,
    enqueued_at  timestamp with time zone,
    lease_until  timestamp with time zone,
    last_error   text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   complete_and_dequeue
-- version   1
-- purpose   Complete messages of a claim and lease the next ones, in one call and one commit.
-- promise   P02 P03 P04 P05 P06 P07 P08 P13 P18 P28 P29
-- locks     as complete, then as dequeue_fast
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ713
-- differs   nothing
#variable_conflict use_column
declare
    v_queue_id       integer;
    v_result_seconds double precision;
    v_is_stale       boolean := false;
begin
    select q.queue_id, q.result_seconds into v_queue_id, v_result_seconds
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    -- complete refuses a claim that is gone, but this routine still dequeues. Lock the claim row as
    -- complete does, before any other row.
    if p_message_ids is null and p_claim_id is not null then
        perform from rowq.claim c
        where c.queue_id = v_queue_id
          and c.claim_id = p_claim_id
        for update;
        v_is_stale := not found;
    end if;
    if v_is_stale and p_results is not null then
        perform rowq.internal_check_results(p_results, 1, v_result_seconds);
    end if;
    if v_is_stale then
        outcome := 'stale';
        claim_id := p_claim_id;
        return next;
    else
        return query
        select 'stale', p_claim_id, c.message_id, null::integer, null, null::jsonb, null,
               null::bytea, null::timestamp with time zone, null::timestamp with time zone, null
        from rowq.complete(p_queue_name, p_claim_id, p_message_ids, p_results) c
        where c.outcome = 'stale';
    end if;

    return query
    select 'leased', d.*
    from rowq.dequeue_fast(p_queue_name, p_batch_size, p_worker_name, p_lease_seconds) d;
end;
$$;
