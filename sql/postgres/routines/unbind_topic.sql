create or replace function rowq.unbind_topic(p_queue_name text, p_topic_pattern text)
returns table (queue_name text, topic_pattern text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   unbind_topic
-- version   1
-- purpose   Remove a queue's pattern; messages already enqueued stay.
-- promise   P15 P35
-- locks     the queue row, shared; the topic_binding row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_error    text;
    v_queue_id integer;
begin
    v_error := rowq.internal_topic_error('topic_pattern', p_topic_pattern, true);
    if v_error is not null then
        raise exception 'RQ711 invalid_argument: %', v_error
            using errcode = 'RQ711';
    end if;
    v_queue_id := rowq.internal_lock_queue(p_queue_name);

    delete from rowq.topic_binding b
    where b.queue_id = v_queue_id
      and b.topic_pattern = p_topic_pattern;

    return query
    select p_queue_name, p_topic_pattern, case when found then 'unbound' else 'not_bound' end;
end;
$$;
