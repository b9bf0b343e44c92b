procedure internal_lock_dead(
    p_queue_name   in varchar2,
    p_message_ids  in clob,
    p_max_messages in number,
    p_message_type in varchar2,
    p_died_before  in timestamp,
    p_queue        out t_queue,
    p_ids          out rowq_ids,
    p_locked       out nocopy t_locked_rows
)
is
-- routine   internal_lock_dead
-- purpose   Refuse bad arguments of reset and discard_dead, and lock the dead messages that they mean; p_ids are those that were named, or null.
-- locks     dead rows, passing over locked ones
    -- No type is longer than 200 characters, and SQL takes no more than 2000 bytes. Compare bytes,
    -- because texts are compared by the session's NLS_COMP and NLS_SORT.
    v_type  constant raw(804) := utl_raw.cast_to_raw(substr(p_message_type, 1, 201));
    v_limit pls_integer;
    cursor asked_for is
        select /*+ leading(a@asked d) use_nl(d) index(d rowq_dead_pk) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = p_queue.part_id
          and d.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        order by d.part_id, d.message_id
        for update skip locked;
    cursor oldest is
        select /*+ index_rs_asc(d rowq_dead_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = p_queue.part_id
          and (p_died_before is null or d.died_at < p_died_before)
          and (v_type is null or v_type = (
              select /*+ index(m rowq_message_pk) */ hextoraw(rawtohex(m.message_type))
              from rowq_message m
              where m.part_id = d.part_id
                and m.message_id = d.message_id
          ))
        order by d.part_id, d.message_id
        for update skip locked;
begin
    p_ids := internal_read_id_list(p_message_ids);
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    if p_message_ids is not null and (p_message_type is not null or p_died_before is not null) then
        internal_refuse('message_type and died_before go together with no message_ids');
    end if;
    p_queue := internal_require_queue(p_queue_name);

    if p_ids is null then
        v_limit := p_max_messages;
        open oldest;
        fetch oldest bulk collect into p_locked limit v_limit;
        close oldest;
    else
        v_limit := 10000;
        open asked_for;
        fetch asked_for bulk collect into p_locked limit v_limit;
        close asked_for;
    end if;
end internal_lock_dead;
