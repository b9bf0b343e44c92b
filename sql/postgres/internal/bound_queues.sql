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
    if cardinality(p_topics) = 1 then
        return query
        select distinct t.topic, q.queue_name, q.max_body_length
        from unnest(p_topics) t (topic)
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
        return;
    end if;

    -- Many topics beside many patterns that begin alike would be too many pairs to compare. But a
    -- topic matches at most one pattern of each shape. So each pattern that begins as some topic
    -- does is read once for its shape, however many topics there are; the patterns that a topic
    -- would match are then put together from its words, and looked up.
    return query
    with head as materialized (
        select t.topic, t.words, array_to_string(t.words[:n.word_count], '.') as literal_head
        from (
            select u.topic, string_to_array(u.topic, '.') as words
            from (select distinct g.topic from unnest(p_topics) g (topic)) u
            offset 0
        ) t
        cross join generate_series(0, cardinality(t.words)) n (word_count)
    ),
    shape as materialized (
        select distinct x.literal_head, x.shape
        from (select distinct h.literal_head from head h) d
        join rowq.topic_binding x on x.literal_head = d.literal_head
    ),
    candidate as materialized (
        select h.topic, (
            select string_agg(
                       case substr(s.shape, w.place, 1)
                           when '0' then h.words[w.place]
                           when '1' then '*'
                           else '#'
                       end,
                       '.' order by w.place
                   )
            from generate_series(1, length(s.shape)) w (place)
        ) as topic_pattern
        from head h
        join shape s on s.literal_head = h.literal_head
        where length(s.shape) = cardinality(h.words)
           or (right(s.shape, 1) = '2' and length(s.shape) <= cardinality(h.words) + 1)
    )
    select distinct m.topic, q.queue_name, q.max_body_length
    from candidate m
    join rowq.topic_binding x on x.topic_pattern = m.topic_pattern
    join rowq.queue q on q.part_id = x.part_id;
end;
$$;
