procedure internal_follow_death(
    p_part_id in number,
    p_dead_id in number,
    p_failed  in out nocopy rowq_ids
)
is
-- routine   internal_follow_death
-- purpose   Let the messages go on that wait for a dead one and do not mind; those that fail with it are dead now, and are added to p_failed.
-- promise   P27
-- locks     successor rows, passing over locked ones; as internal_unblock; new recheck rows
-- differs   part of internal_follow_deaths on PostgreSQL
    c_most constant pls_integer := 1000;
    v_ids   rowq_ids;
    v_again rowq_ids;
    v_some  rowq_ids;
    cursor asking_rows is
        select /*+ index_rs_asc(s rowq_successor_pk) no_batch_table_access_by_rowid(s) */
               s.message_id
        from rowq_successor s
        where s.part_id = p_part_id
          and s.predecessor_id = p_dead_id
          and exists (
              select null
              from rowq_blocked b
              where b.part_id = s.part_id
                and b.message_id = s.message_id
                and b.on_dead in ('continue', 'fail')
          )
        order by s.part_id, s.predecessor_id, s.message_id
        for update skip locked;
begin
    open asking_rows;
    fetch asking_rows bulk collect into v_ids limit c_most;
    close asking_rows;
    if v_ids.count = 0 then
        return;
    end if;
    if v_ids.count = c_most then
        internal_recheck_later(p_part_id, null, rowq_ids(p_dead_id), 1);
    end if;
    forall i in 1 .. v_ids.count
        delete from rowq_successor s
        where s.part_id = p_part_id
          and s.predecessor_id = p_dead_id
          and s.message_id = v_ids(i);
    internal_unblock(p_part_id, v_ids, null, v_again, v_some);
    if v_again.count > 0 then
        internal_recheck_later(p_part_id, v_again, null, 0);
    end if;
    for i in 1 .. v_some.count loop
        p_failed.extend;
        p_failed(p_failed.last) := v_some(i);
    end loop;
end internal_follow_death;
