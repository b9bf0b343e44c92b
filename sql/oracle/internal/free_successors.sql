procedure internal_free_successors(p_part_id in number, p_predecessor_id in number)
is
-- routine   internal_free_successors
-- purpose   Let the messages go on that have waited for this one, which has ended; leave to maintain those that cannot go on now.
-- promise   P26
-- locks     successor rows, passing over locked ones; as internal_let_go; new recheck rows
    c_most constant pls_integer := 1000;
    v_ids   rowq_ids;
    v_again rowq_ids;
    cursor waiting_rows is
        select /*+ index_rs_asc(s rowq_successor_pk) no_batch_table_access_by_rowid(s) */
               s.message_id
        from rowq_successor s
        where s.part_id = p_part_id
          and s.predecessor_id = p_predecessor_id
        order by s.part_id, s.predecessor_id, s.message_id
        for update skip locked;
begin
    open waiting_rows;
    fetch waiting_rows bulk collect into v_ids limit c_most;
    close waiting_rows;
    if v_ids.count = 0 then
        return;
    end if;
    if v_ids.count = c_most then
        internal_recheck_later(p_part_id, null, rowq_ids(p_predecessor_id), 0);
    end if;
    forall i in 1 .. v_ids.count
        delete from rowq_successor s
        where s.part_id = p_part_id
          and s.predecessor_id = p_predecessor_id
          and s.message_id = v_ids(i);
    internal_let_go(p_part_id, v_ids, p_predecessor_id, v_again);
    if v_again.count > 0 then
        internal_recheck_later(p_part_id, v_again, null, 0);
    end if;
end internal_free_successors;
