function internal_purge_grouped(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_purge_grouped
-- purpose   Delete up to p_limit messages that wait in groups; null means all.
-- promise   P15 P32
-- locks     grouped rows, passing over locked ones; then as internal_finish
-- differs   no such helper on PostgreSQL: part of purge_queue
    type t_grouped_row is record (
        group_key  rowq_grouped.group_key%type,
        message_id rowq_grouped.message_id%type
    );
    type t_grouped_rows is table of t_grouped_row index by pls_integer;
    c_step constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_grouped_rows;
    v_messages t_messages;
    cursor waiting_rows is
        select /*+ index_rs_asc(g rowq_grouped_pk) no_batch_table_access_by_rowid(g) */
               g.group_key, g.message_id
        from rowq_grouped g
        where g.part_id = p_queue.part_id
        order by g.part_id, g.group_key, g.message_id
        for update skip locked;
begin
    open waiting_rows;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        fetch waiting_rows bulk collect into v_locked limit v_step;
        exit when v_locked.count = 0;
        forall i in 1 .. v_locked.count
            delete from rowq_grouped g
            where g.part_id = p_queue.part_id
              and g.group_key = v_locked(i).group_key
              and g.message_id = v_locked(i).message_id;
        v_messages.delete;
        -- Finish a message only if this statement has deleted its row.
        for i in 1 .. v_locked.count loop
            if sql%bulk_rowcount(i) = 1 then
                v_messages(v_messages.count + 1).message_id := v_locked(i).message_id;
                v_messages(v_messages.count).is_tokenless := 1;
            end if;
        end loop;
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    close waiting_rows;
    return v_removed;
end internal_purge_grouped;
