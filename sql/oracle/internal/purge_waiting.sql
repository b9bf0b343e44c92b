function internal_purge_waiting(p_queue in t_queue, p_of_dead in boolean, p_limit in number)
return number
is
-- routine   internal_purge_waiting
-- purpose   Delete up to p_limit delayed messages, or dead ones; null means all.
-- promise   P15 P32
-- locks     delayed or dead rows, passing over locked ones; then as internal_finish
    c_step constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_locked_rows;
    v_messages t_messages;
    cursor delayed_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.part_id = p_queue.part_id
        order by d.part_id, d.due_at, d.message_id
        for update skip locked;
    cursor dead_rows is
        select /*+ index_rs_asc(d rowq_dead_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = p_queue.part_id
        order by d.part_id, d.message_id
        for update skip locked;
begin
    if p_of_dead then
        open dead_rows;
    else
        open delayed_rows;
    end if;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        v_messages.delete;
        if p_of_dead then
            fetch dead_rows bulk collect into v_locked limit v_step;
            exit when v_locked.count = 0;
            internal_delete_dead(v_locked, v_messages);
        else
            fetch delayed_rows bulk collect into v_locked limit v_step;
            exit when v_locked.count = 0;
            internal_delete_delayed(v_locked, v_messages);
        end if;
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    if p_of_dead then
        close dead_rows;
    else
        close delayed_rows;
    end if;
    return v_removed;
end internal_purge_waiting;
