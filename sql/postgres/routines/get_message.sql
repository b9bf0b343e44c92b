create or replace function rowq.get_message(p_queue_name text, p_message_id bigint)
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
-- routine   get_message
-- version   1
-- purpose   Return the state of a message and all its data, or no row if unknown.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_found record;
begin
    if p_message_id is null then
        raise exception 'RQ711 invalid_argument: message_id is required'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_found := rowq.internal_locate_messages(v_queue.queue_id, p_message_id);
    if v_found.state is not null then
        return query
        select m.message_id, v_found.state, v_found.lane / 2, v_found.attempt::integer,
               coalesce(m.max_attempts, v_queue.max_attempts)::integer, m.message_type, m.headers,
               m.body, m.body_binary, m.dedup_key, m.enqueued_at, v_found.due_at,
               v_found.claim_id, v_found.worker_name, v_found.lease_until, v_found.finished_at,
               v_found.last_error, m.group_key, v_found.waits_for, m.expires_at, v_found.progress,
               m.producer_name
        from rowq.message m
        where m.queue_id = v_queue.queue_id
          and m.message_id = p_message_id;
        if found then
            return;
        end if;
        -- It has ended since then, so it may be in the archive.
    end if;

    return query
    select a.message_id, a.state, a.lane / 2, a.attempt::integer, null::integer, a.message_type,
           a.headers, a.body, a.body_binary, a.dedup_key, a.enqueued_at,
           null::timestamp with time zone, null::bigint, null::text,
           null::timestamp with time zone, a.finished_at, null::text,
           a.group_key, null::bigint, null::timestamp with time zone, null::text, a.producer_name
    from rowq.archive a
    where a.queue_id = v_queue.queue_id
      and a.message_id = p_message_id;
end;
$$;
