function internal_bound_queues(p_new in t_new_messages)
return t_bound_queues
is
-- routine   internal_bound_queues
-- purpose   Return the queues that are bound to the topics of messages, in the order of their names, with the places of the messages; and keep them from being dropped.
-- promise   P35
-- locks     the table of messages against drop_queue; waits for one that is under way
    v_found    t_bound_queues;
    v_topic    varchar2(400 char);
    v_first    t_places;
    v_lists    t_key_lists;
    v_shapes   t_shapes;
    v_patterns rowq_keys;
    v_keys     rowq_topic_keys := rowq_topic_keys();
begin
    -- A drop_queue holds all tables. The statements after this one see what it has left, and no
    -- other drop can begin before this transaction ends.
    lock table rowq_message in row exclusive mode;

    for i in 1 .. p_new.count loop
        -- The digits and letters of bytes are different ones to every NLS_SORT.
        v_topic := rawtohex(utl_raw.cast_to_raw(p_new(i).topic));
        if not v_first.exists(v_topic) then
            v_first(v_topic) := i;
            internal_topic_patterns(p_new(i).topic, v_shapes, v_patterns);
            v_lists(i) := v_patterns;
        end if;
        v_patterns := v_lists(v_first(v_topic));
        for n in 1 .. v_patterns.count loop
            v_keys.extend;
            v_keys(v_keys.last) := rowq_topic_key(i, v_patterns(n));
        end loop;
    end loop;

    select /*+ leading(k b q) use_nl(b) use_nl(q) cardinality(k 10)
               index(b rowq_topic_binding_key_ix) index(q rowq_queue_pk) */
           distinct k.place, q.part_id, q.queue_name, q.queue_key, q.max_body_length,
           q.listened_until
    bulk collect into v_found
    from table(v_keys) k
    join rowq_topic_binding b on b.pattern_key = k.pattern_key
    join rowq_queue q on q.part_id = b.part_id
    order by q.queue_key, k.place;
    return v_found;
end internal_bound_queues;
