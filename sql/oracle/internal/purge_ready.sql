function internal_purge_ready(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_purge_ready
-- purpose   Delete up to p_limit ready messages, lane by lane; null means all.
-- promise   P15 P32
-- locks     ready rows, passing over locked ones; then as internal_finish
    c_step constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_locked_rows;
    v_messages t_messages;
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) no_batch_table_access_by_rowid(r) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_queue.part_id
        order by r.part_id, r.lane, r.seq, r.message_id
        for update skip locked;
begin
    open ready_rows;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        fetch ready_rows bulk collect into v_locked limit v_step;
        exit when v_locked.count = 0;
        v_messages.delete;
        internal_delete_ready(v_locked, v_messages);
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    close ready_rows;
    return v_removed;
end internal_purge_ready;
