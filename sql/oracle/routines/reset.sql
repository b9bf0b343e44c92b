procedure reset(
    p_queue_name   in varchar2,
    p_message_ids  in clob default null,
    p_max_messages in number default 1000,
    p_message_type in varchar2 default null,
    p_died_before  in timestamp default null,
    p_rows         out sys_refcursor
)
is
-- routine   reset
-- version   1
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.
-- promise   P10 P12 P32
-- locks     dead rows, passing over locked ones; dedup and result rows; new ready and expiry rows;
--           groups as enqueue
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
    v_waiting       t_numbers;
    v_ready         t_messages;
    v_behind        t_messages;
    v_seqs          t_numbers;
    v_lines         rowq_lines;
    v_limit         pls_integer;
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
    internal_pop_dead(v_queue.part_id, v_ids, v_locked, v_messages, v_lines);
    -- A message that is alive again has not ended.
    forall i in 1 .. v_messages.count
        delete from rowq_result r
        where r.part_id = v_queue.part_id
          and r.message_id = v_messages(i).message_id;
    internal_join_groups(v_queue.part_id, v_messages, v_waiting);
    for i in 1 .. v_messages.count loop
        if v_waiting.exists(i) then
            v_behind(v_behind.count + 1) := v_messages(i);
        else
            v_ready(v_ready.count + 1) := v_messages(i);
        end if;
    end loop;
    internal_note_expiry(v_queue.part_id, v_behind, v_seqs);
    internal_push_ready(v_queue.part_id, v_ready);
    internal_ring_doorbell(v_queue.part_id, v_queue.listened_until);

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end reset;
