create or replace function rowq.bind_topic(p_queue_name text, p_topic_pattern text)
returns table (queue_name text, topic_pattern text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   bind_topic
-- version   1
-- purpose   Bind a queue to the topics that match a pattern.
-- promise   P15 P35
-- locks     the queue row, shared; a new topic_binding row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_error    text;
    v_words    text;
    v_queue_id integer;
begin
    v_error := rowq.internal_topic_error('topic_pattern', p_topic_pattern, true);
    if v_error is not null then
        raise exception 'RQ711 invalid_argument: %', v_error
            using errcode = 'RQ711';
    end if;
    v_queue_id := rowq.internal_lock_queue(p_queue_name);

    v_words := rtrim(rtrim(p_topic_pattern, '#'), '.');
    insert into rowq.topic_binding (
        queue_id, word_count, matches_rest, topic_pattern, literal_prefix, like_pattern, shape
    )
    values (
        v_queue_id,
        cardinality(string_to_array(v_words, '.')),
        right(p_topic_pattern, 1) = '#',
        p_topic_pattern,
        rtrim(split_part(v_words, '*', 1), '.'),
        case
            when strpos(v_words, '*') > 0
                then replace(replace(v_words, '_', '!_'), '*', '%')
        end,
        translate(regexp_replace(p_topic_pattern, '[^.*#]+', '0', 'g'), '*#.', '12')
    )
    on conflict (queue_id, topic_pattern) do nothing;

    return query
    select p_queue_name, p_topic_pattern, case when found then 'bound' else 'exists' end;
end;
$$;
