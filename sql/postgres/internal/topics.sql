-- Topics: publish, and the patterns that queues are bound to.
--
-- A published message goes once to every queue with a matching pattern, in the order of queue
-- names, in the caller's transaction. An index finds patterns by their prefix, the words before the
-- first wildcard. A batch reads once which shapes of patterns exist, and looks up one pattern per
-- shape instead of comparing every pair. Arguments are checked even if no queue is bound.
--
--   bind_topic, unbind_topic, publish -> topic_error
--   publish, publish_batch -> bound_queues
--   publish_batch -> extract_topics -> topic_error
--
-- Reads queue, topic_binding.

create or replace function rowq.internal_topic_error(
    p_name       text,
    p_topic      text,
    p_is_pattern boolean
)
returns text
language plpgsql
as $$
-- purpose   Return the error in a topic or pattern, or null.
begin
    return case
        when p_topic is null
            then p_name || ' is required'
        when char_length(p_topic) > 200
            then p_name || ' must be at most 200 characters'
        when p_is_pattern
             and p_topic collate "C" !~ '^(([A-Za-z0-9_-]+|[*])[.])*([A-Za-z0-9_-]+|[*#])$'
            then p_name || ' must be words of letters, digits, _, - or *, separated by dots, # last'
        when not p_is_pattern
             and p_topic collate "C" !~ '^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*$'
            then p_name || ' must be words of letters, digits, _ and -, separated by dots'
    end;
end;
$$;

create or replace function rowq.internal_bound_queues(p_topics text[])
returns table (topic text, queue_name text, max_body_length integer)
language plpgsql
as $$
-- purpose   Return the queues that are bound to each topic, and protect them from drop_queue.
-- locks     the table message in row exclusive mode; waits for a running drop_queue
#variable_conflict use_column
begin
    -- drop_queue locks all tables. The next statement sees the queues that it left, and no other
    -- drop_queue can start before this transaction ends.
    lock table rowq.message in row exclusive mode;

    -- A pattern matches if its prefix begins the topic, and if the same number of words of the
    -- topic is like the pattern. "%" cannot match a dot: both sides have the same number of dots.
    if cardinality(p_topics) = 1 then
        return query
        select distinct t.topic, q.queue_name, q.max_body_length
        from unnest(p_topics) t (topic)
        cross join lateral (
            select array_agg(array_to_string(w.words[:n.word_count], '.') order by n.word_count)
                as texts
            from (select string_to_array(t.topic, '.') as words) w
            cross join generate_series(0, cardinality(w.words)) n (word_count)
        ) prefix
        cross join lateral (
            select x.queue_id
            from rowq.topic_binding x
            where x.literal_prefix = any (prefix.texts)
              and (x.matches_rest or x.word_count = cardinality(prefix.texts) - 1)
              and (
                  x.like_pattern is null
                  or prefix.texts[x.word_count + 1] like x.like_pattern escape '!'
              )
            offset 0
        ) b
        join rowq.queue q on q.queue_id = b.queue_id;
        return;
    end if;

    -- Many topics times many patterns are too many pairs to compare, but a topic matches at most
    -- one pattern of each shape. So read the shapes below each prefix once, build the patterns that
    -- a topic would match from its words, and look them up.
    return query
    with prefix as materialized (
        select t.topic, t.words, array_to_string(t.words[:n.word_count], '.') as literal_prefix
        from (
            select u.topic, string_to_array(u.topic, '.') as words
            from (select distinct g.topic from unnest(p_topics) g (topic)) u
            offset 0
        ) t
        cross join generate_series(0, cardinality(t.words)) n (word_count)
    ),
    shape as materialized (
        select distinct x.literal_prefix, x.shape
        from (select distinct h.literal_prefix from prefix h) d
        join rowq.topic_binding x on x.literal_prefix = d.literal_prefix
    ),
    candidate as materialized (
        select h.topic, (
            select string_agg(
                       case substr(s.shape, w.position, 1)
                           when '0' then h.words[w.position]
                           when '1' then '*'
                           else '#'
                       end,
                       '.' order by w.position
                   )
            from generate_series(1, length(s.shape)) w (position)
        ) as topic_pattern
        from prefix h
        join shape s on s.literal_prefix = h.literal_prefix
        where length(s.shape) = cardinality(h.words)
           or (right(s.shape, 1) = '2' and length(s.shape) <= cardinality(h.words) + 1)
    )
    select distinct m.topic, q.queue_name, q.max_body_length
    from candidate m
    join rowq.topic_binding x on x.topic_pattern = m.topic_pattern
    join rowq.queue q on q.queue_id = x.queue_id;
end;
$$;

create or replace function rowq.internal_extract_topics(
    inout p_messages jsonb,
    out o_topics     text[]
)
language plpgsql
as $$
-- purpose   Remove the topics from the messages of publish_batch, and use them as default types.
-- errors    RQ711
declare
    v_position integer;
    v_error    text;
begin
    -- Leave anything but an array of objects for internal_parse_messages to refuse.
    if jsonb_typeof(p_messages) is distinct from 'array' or exists (
        select 1
        from jsonb_array_elements(p_messages) e (message)
        where jsonb_typeof(e.message) <> 'object'
    ) then
        return;
    end if;

    select f.position, f.error into v_position, v_error
    from (
        select e.position,
               case
                   when e.message ?| array[
                           'predecessor_ids', 'predecessor_positions', 'on_predecessor_dead'
                       ]
                       then 'a published message must not have predecessors'
                   when jsonb_typeof(e.message -> 'topic') not in ('string', 'null')
                       then 'topic must be a JSON string'
                   else rowq.internal_topic_error('topic', e.message ->> 'topic', false)
               end as error
        from jsonb_array_elements(p_messages) with ordinality e (message, position)
    ) f
    where f.error is not null
    order by f.position
    limit 1;
    if found then
        raise exception 'RQ711 invalid_argument: % (message %)', v_error, v_position
            using errcode = 'RQ711';
    end if;

    select coalesce(
               jsonb_agg(
                   case
                       when e.message ->> 'message_type' is null
                           then e.message - 'topic'
                               || jsonb_build_object('message_type', e.message -> 'topic')
                       else e.message - 'topic'
                   end
                   order by e.position
               ),
               '[]'
           ),
           array_agg(e.message ->> 'topic' order by e.position)
    into p_messages, o_topics
    from jsonb_array_elements(p_messages) with ordinality e (message, position);
end;
$$;
