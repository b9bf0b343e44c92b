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
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts.
-- promise   P10 P12 P32
-- locks     dead rows, skipping locked ones; dedup and result rows; new ready and expiry rows;
--           groups as enqueue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_locked        t_locked_rows;
    v_messages      t_messages;
    v_waiting       t_numbers;
    v_ready         t_messages;
    v_behind        t_messages;
    v_seqs          t_numbers;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_lock_dead(
        p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before,
        v_queue, v_ids, v_locked
    );
    internal_pop_dead(v_queue.queue_id, v_ids, v_locked, v_messages, v_lines);
    -- A message that is reset has no result any more.
    forall i in 1 .. v_messages.count
        delete from rowq_result r
        where r.queue_id = v_queue.queue_id
          and r.message_id = v_messages(i).message_id;
    internal_join_groups(v_queue.queue_id, v_messages, v_waiting);
    for i in 1 .. v_messages.count loop
        if v_waiting.exists(i) then
            v_behind(v_behind.count + 1) := v_messages(i);
        else
            v_ready(v_ready.count + 1) := v_messages(i);
        end if;
    end loop;
    internal_record_expiry(v_queue.queue_id, v_behind, v_seqs);
    internal_push_ready(v_queue.queue_id, v_ready);
    internal_wake_waiters(v_queue.queue_id, v_queue.waiting_until);

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end reset;
