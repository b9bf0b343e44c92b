function internal_pop_waiting(p_part_id in number, p_ids in rowq_ids)
return t_messages
is
-- routine   internal_pop_waiting
-- purpose   Take messages out of wherever they wait; those that a worker holds stay.
-- promise   P03
-- locks     blocked, delayed, ready, grouped and dead rows, passing over locked ones
    c_most constant pls_integer := 10000;
    v_locked   t_locked_rows;
    v_messages t_messages;
    v_rest     t_messages;
    v_popped   pls_integer;
    v_ids      t_numbers;
    v_lanes    t_numbers;
    -- The ids lead and the rows are found by key, one by one: the server takes a list for 8168 ids,
    -- and would read the table whole for one of them.
    cursor blocked_rows is
        select /*+ leading(a@asked b) use_nl(b) index(b rowq_blocked_pk) */ b.message_id, b.lane
        from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        for update skip locked;
    cursor dead_rows is
        select /*+ leading(a@asked d) use_nl(d) index(d rowq_dead_pk) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = p_part_id
          and d.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        for update skip locked;
    -- Find a delayed message by message.due_at, which is its place in delayed.
    cursor delayed_rows is
        select /*+ leading(a@asked m@asked d) use_nl(d) index(d rowq_delayed_pk) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where (d.part_id, d.due_at, d.message_id) in (
            select /*+ qb_name(asked) unnest cardinality(a 10) use_nl(m)
                       index(m rowq_message_pk) */
                   m.part_id, m.due_at, m.message_id
            from table(p_ids) a
            join rowq_message m
              on m.part_id = p_part_id
             and m.message_id = a.column_value
        )
        for update skip locked;
    -- A message that was never given back is at its first place (lane and seq of message). The
    -- others that have a body are looked for among all ready messages.
    cursor first_places is
        select /*+ leading(a@asked m@asked r) use_nl(r) index(r rowq_ready_pk) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where (r.part_id, r.lane, r.seq, r.message_id) in (
            select /*+ qb_name(asked) unnest cardinality(a 10) use_nl(m)
                       index(m rowq_message_pk) */
                   m.part_id, m.lane, m.seq, m.message_id
            from table(p_ids) a
            join rowq_message m
              on m.part_id = p_part_id
             and m.message_id = a.column_value
        )
        for update skip locked;
    cursor other_places is
        select /*+ index_rs_asc(r rowq_ready_pk) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.message_id in (select a.column_value from table(p_ids) a)
        for update skip locked;
begin
    -- A message that waits for others goes to each of the other places from there, so look for it
    -- first.
    open blocked_rows;
    fetch blocked_rows bulk collect into v_ids, v_lanes limit c_most;
    close blocked_rows;
    internal_pop_blocked(p_part_id, v_ids, v_lanes, v_messages);

    open dead_rows;
    fetch dead_rows bulk collect into v_locked limit c_most;
    close dead_rows;
    internal_delete_dead(v_locked, v_messages);

    open delayed_rows;
    fetch delayed_rows bulk collect into v_locked limit c_most;
    close delayed_rows;
    internal_delete_delayed(v_locked, v_messages);

    open first_places;
    fetch first_places bulk collect into v_locked limit c_most;
    close first_places;
    internal_delete_ready(v_locked, v_messages);

    if v_messages.count < p_ids.count then
        -- A message goes from its group to the ready ones, so look for it there first.
        v_popped := v_messages.count;
        v_rest := internal_rest_of_ids(p_part_id, p_ids, v_messages);
        internal_pop_grouped(p_part_id, v_rest, v_messages);
        v_popped := v_messages.count - v_popped;
        if v_popped < v_rest.count then
            open other_places;
            fetch other_places bulk collect into v_locked limit c_most;
            close other_places;
            internal_delete_ready(v_locked, v_messages);
        end if;
    end if;
    return v_messages;
end internal_pop_waiting;
