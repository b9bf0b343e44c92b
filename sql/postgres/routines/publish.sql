create or replace function rowq.publish(
    p_topic          text,
    p_body           text default null,
    p_body_binary    bytea default null,
    p_message_type   text default null,
    p_headers        jsonb default null,
    p_priority       integer default 5,
    p_delay_seconds  double precision default null,
    p_run_at         timestamp with time zone default null,
    p_dedup_key      text default null,
    p_max_attempts   integer default null,
    p_group_key      text default null,
    p_expire_seconds double precision default null,
    p_producer_name  text default null
)
returns table (queue_name text, message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   publish
-- version   1
-- purpose   Enqueue a message to each queue bound to a topic.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; as enqueue, in the order of queue names
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_error      text;
    v_queue_name text;
begin
    -- Check the arguments even if no queue is bound.
    v_error := coalesce(
        rowq.internal_topic_error('topic', p_topic, false),
        rowq.internal_message_error(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
            p_run_at, p_dedup_key, p_max_attempts, p_group_key, null, null, p_expire_seconds,
            p_producer_name
        )
    );
    if v_error is not null then
        raise exception 'RQ711 invalid_argument: %', v_error
            using errcode = 'RQ711';
    end if;

    for v_queue_name in
        select b.queue_name
        from rowq.internal_bound_queues(array[p_topic]) b
        order by b.queue_name collate "C"
    loop
        return query
        select v_queue_name, e.message_id, e.outcome
        from rowq.enqueue(
            v_queue_name, p_body, p_body_binary, coalesce(p_message_type, p_topic), p_headers,
            p_priority, p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key,
            null, null, p_expire_seconds, p_producer_name
        ) e;
    end loop;
end;
$$;
