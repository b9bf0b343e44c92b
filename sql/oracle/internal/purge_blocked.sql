function internal_purge_blocked(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_purge_blocked
-- purpose   Delete up to p_limit messages that wait for others to end; null means all.
-- promise   P15 P32
-- locks     blocked rows, passing over locked ones; then as internal_finish
-- differs   no such helper on PostgreSQL: part of purge_queue
    c_step constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_ids      t_numbers;
    v_lanes    t_numbers;
    v_messages t_messages;
    cursor waiting_rows is
        select /*+ index_rs_asc(b rowq_blocked_pk) no_batch_table_access_by_rowid(b) */
               b.message_id, b.lane
        from rowq_blocked b
        where b.part_id = p_queue.part_id
        order by b.part_id, b.message_id
        for update skip locked;
begin
    open waiting_rows;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        fetch waiting_rows bulk collect into v_ids, v_lanes limit v_step;
        exit when v_ids.count = 0;
        v_messages.delete;
        internal_pop_blocked(p_queue.part_id, v_ids, v_lanes, v_messages);
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    close waiting_rows;
    return v_removed;
end internal_purge_blocked;
