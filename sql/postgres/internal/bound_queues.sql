create or replace function rowq.internal_bound_queues(p_topics text[])
returns table (topic text, queue_name text, max_body_length integer)
language plpgsql
as $$
-- routine   internal_bound_queues
-- purpose   Return the queues that are bound to topics, none twice for a topic, and keep them from being dropped.
-- promise   P35
-- locks     the table of messages against drop_queue; waits for one that is under way
#variable_conflict use_column
begin
    -- A drop_queue holds all tables. The statement after this one sees what it has left, and no
    -- other drop can begin before this transaction ends.
    lock table rowq.message in row exclusive mode;

    -- A pattern matches if the words before its first wildcard are the first ones of the topic, and
    -- if as many words as it has are like its own. No "%" swallows a dot there, because both sides
    -- have the same number of them.
    return query
    select distinct t.topic, q.queue_name, q.max_body_length
    from (select distinct u.topic from unnest(p_topics) u (topic)) t
    cross join lateral (
        select array_agg(array_to_string(w.words[:n.word_count], '.') order by n.word_count)
            as texts
        from (select string_to_array(t.topic, '.') as words) w
        cross join generate_series(0, cardinality(w.words)) n (word_count)
    ) head
    cross join lateral (
        select x.part_id
        from rowq.topic_binding x
        where x.literal_head = any (head.texts)
          and (x.has_rest or x.word_count = cardinality(head.texts) - 1)
          and (
              x.like_pattern is null
              or head.texts[x.word_count + 1] like x.like_pattern escape '!'
          )
        offset 0
    ) b
    join rowq.queue q on q.part_id = b.part_id;
end;
$$;
