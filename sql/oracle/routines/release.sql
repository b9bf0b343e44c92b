procedure release(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_message_ids   in clob default null,
    p_delay_seconds in number default null,
    p_rows          out sys_refcursor
)
is
-- routine   release
-- version   1
-- purpose   Return messages without spending the attempt: to the front of their priority, or after a delay.
-- promise   P08 P34 P37 P38
-- locks     the claim row; then new ready rows, or with a delay message rows: waits for a producer
--           that has just named one as a predecessor; new delayed rows; for cancelled messages as
--           complete; new history rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_claim         t_claim;
    v_messages      t_messages;
    v_rest          t_messages;
    v_cancelled     t_messages;
    v_due_at        t_timestamps;
    v_outcome       varchar2(20 char) := 'released';
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_ids := internal_read_id_list(p_message_ids);
    internal_check_claim(p_claim_id);
    internal_check_range('delay_seconds', p_delay_seconds, 0, 315360000);
    if p_delay_seconds > 0 then
        v_outcome := 'snoozed';
    end if;
    v_queue := internal_require_queue(p_queue_name);

    internal_pop_claimed(v_queue.queue_id, p_claim_id, v_ids, v_claim, v_messages);
    internal_split_by_cancel(v_messages, v_rest, v_cancelled);
    internal_finish(v_queue, v_cancelled, 'cancelled');
    -- Before internal_as_front lowers the attempt: the history needs its number.
    if v_queue.history_days > 0 then
        internal_push_history(v_queue.queue_id, v_claim, v_cancelled, 'cancelled', null);
        internal_push_history(v_queue.queue_id, v_claim, v_rest, v_outcome, null);
    end if;
    internal_as_front(v_rest, 1);
    if p_delay_seconds > 0 then
        internal_back_off(v_queue, v_rest, p_delay_seconds, v_due_at);
        internal_push_delayed(v_queue.queue_id, v_rest, v_due_at);
    else
        internal_push_ready(v_queue.queue_id, v_rest);
    end if;
    internal_wake_waiters(v_queue.queue_id, v_queue.waiting_until);
    v_lines := internal_outcomes(v_ids, v_messages, v_outcome);
    internal_set_outcomes(v_lines, internal_ids_of(v_cancelled), 'cancelled');
    for i in 1 .. v_lines.count loop
        if v_lines(i).outcome = 'snoozed' then
            v_lines(i).due_at := v_due_at(1);
        end if;
    end loop;

    open p_rows for
        select n.message_id, n.outcome, n.due_at
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end release;
