procedure discard_dead(
    p_queue_name   in varchar2,
    p_message_ids  in clob default null,
    p_max_messages in number default 1000,
    p_message_type in varchar2 default null,
    p_died_before  in timestamp default null,
    p_rows         out sys_refcursor
)
is
-- routine   discard_dead
-- version   1
-- purpose   Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.
-- promise   P12 P22 P26
-- locks     dead rows, passing over locked ones; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    -- No type is longer than 200 characters, and SQL takes no more than 2000 bytes. Compare bytes,
    -- because texts are compared by the session's NLS_COMP and NLS_SORT.
    v_type          constant raw(804) := utl_raw.cast_to_raw(substr(p_message_type, 1, 201));
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_locked        t_locked_rows;
    v_messages      t_messages;
    v_limit         pls_integer;
    v_removed       number;
    v_has_savepoint boolean;
    cursor asked_for is
        select /*+ leading(a@asked d) use_nl(d) index(d rowq_dead_pk) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = v_queue.part_id
          and d.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(v_ids) a
          )
        order by d.part_id, d.message_id
        for update skip locked;
    cursor oldest is
        select /*+ index_rs_asc(d rowq_dead_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.part_id = v_queue.part_id
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
    internal_begin_work(v_has_savepoint);
    v_ids := internal_read_id_list(p_message_ids);
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    if p_message_ids is not null and (p_message_type is not null or p_died_before is not null) then
        internal_refuse('message_type and died_before go together with no message_ids');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    if v_ids is null then
        v_limit := p_max_messages;
        open oldest;
        fetch oldest bulk collect into v_locked limit v_limit;
        close oldest;
    else
        v_limit := 10000;
        open asked_for;
        fetch asked_for bulk collect into v_locked limit v_limit;
        close asked_for;
    end if;
    internal_delete_dead(v_locked, v_messages);
    -- No archive keeps what is discarded.
    v_queue.archive_days := 0;
    internal_finish(v_queue, v_messages, 'cancelled');
    v_removed := v_messages.count;

    open p_rows for
        select v_removed as removed
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end discard_dead;
