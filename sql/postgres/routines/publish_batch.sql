create or replace function rowq.publish_batch(p_messages jsonb)
returns table ("position" integer, queue_name text, message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   publish_batch
-- version   1
-- purpose   Publish many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; as enqueue_batch, in the order of queue names
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_input   record;
    v_lengths integer[];
    v_queue   record;
begin
    v_input := rowq.internal_extract_topics(p_messages);
    -- Check all messages here, even if no queue is bound, so that errors name positions in the
    -- whole batch. Only the length of a body depends on the queue.
    select array_agg(
               coalesce(char_length(p.body), octet_length(p.body_binary), 0) order by p.position
           )
    into v_lengths
    from rowq.internal_parse_messages(v_input.p_messages, 2147483647) p;

    for v_queue in
        select b.queue_name, b.max_body_length,
               array_agg(e.position::integer order by e.position) as positions,
               jsonb_agg(e.message order by e.position) as messages,
               min(e.position) filter (where e.body_length > b.max_body_length) as too_long_position
        from rowq.internal_bound_queues(v_input.o_topics) b
        join rows from (
            jsonb_array_elements(v_input.p_messages),
            unnest(v_input.o_topics),
            unnest(v_lengths)
        ) with ordinality e (message, topic, body_length, position) on e.topic = b.topic
        group by b.queue_name, b.max_body_length
        order by b.queue_name collate "C"
    loop
        if v_queue.too_long_position is not null then
            raise exception
                'RQ711 invalid_argument: body must be at most % characters (max_body_length), '
                'got % in queue % (message %)',
                v_queue.max_body_length, v_lengths[v_queue.too_long_position], v_queue.queue_name,
                v_queue.too_long_position
                using errcode = 'RQ711';
        end if;

        return query
        select v_queue.positions[s.position], v_queue.queue_name, s.message_id, s.outcome
        from rowq.enqueue_batch(v_queue.queue_name, v_queue.messages) s;
    end loop;
end;
$$;
