create or replace function rowq.bind_topic(p_queue_name text, p_topic_pattern text)
returns table (queue_name text, topic_pattern text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   bind_topic
-- version   1
-- purpose   Let a queue get what is published under the topics that a pattern matches.
-- promise   P15 P35
-- locks     the queue row, shared; a new topic_binding row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_fault   text;
    v_part_id integer;
begin
    v_fault := rowq.internal_topic_fault('topic_pattern', p_topic_pattern, true);
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: %', v_fault
            using errcode = 'RQ711';
    end if;
    v_part_id := rowq.internal_lock_queue(p_queue_name);

    insert into rowq.topic_binding (part_id, topic_pattern, literal_head, shape)
    select v_part_id, p_topic_pattern,
           coalesce(
               string_agg(w.word, '.' order by w.place) filter (where w.place < w.first_wildcard),
               ''
           ),
           string_agg(
               case w.word when '*' then '1' when '#' then '2' else '0' end, '' order by w.place
           )
    from (
        select u.word, u.place,
               coalesce(min(u.place) filter (where u.word in ('*', '#')) over (), 1000)
                   as first_wildcard
        from unnest(string_to_array(p_topic_pattern, '.')) with ordinality u (word, place)
    ) w
    on conflict (part_id, topic_pattern) do nothing;

    return query
    select p_queue_name, p_topic_pattern, case when found then 'bound' else 'exists' end;
end;
$$;
