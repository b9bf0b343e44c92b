create or replace function rowq.find_message(p_queue_name text, p_dedup_key text)
returns table (
    message_id    bigint,
    state         text,
    priority      integer,
    attempt       integer,
    max_attempts  integer,
    message_type  text,
    headers       jsonb,
    body          text,
    body_binary   bytea,
    dedup_key     text,
    enqueued_at   timestamp with time zone,
    due_at        timestamp with time zone,
    claim_id      bigint,
    worker_name   text,
    lease_until   timestamp with time zone,
    finished_at   timestamp with time zone,
    last_error    text,
    group_key     text,
    waits_for     bigint,
    expires_at    timestamp with time zone,
    progress      text,
    producer_name text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   find_message
-- version   1
-- purpose   Return the unfinished message with a dedup key, as get_message does.
-- promise   P12 P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue      rowq.queue;
    v_message_id bigint;
begin
    if p_dedup_key is null then
        raise exception 'RQ711 invalid_argument: dedup_key is required'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    select d.message_id into v_message_id
    from rowq.dedup d
    where d.queue_id = v_queue.queue_id
      and d.dedup_key = p_dedup_key;
    if not found then
        return;
    end if;

    return query
    select g.message_id, g.state, g.priority, g.attempt, g.max_attempts, g.message_type,
           g.headers, g.body, g.body_binary, g.dedup_key, g.enqueued_at, g.due_at,
           g.claim_id, g.worker_name, g.lease_until, g.finished_at, g.last_error,
           g.group_key, g.waits_for, g.expires_at, g.progress, g.producer_name
    from rowq.get_message(p_queue_name, v_message_id) g
    -- It may have ended after its key was found.
    where g.finished_at is null;
end;
$$;
