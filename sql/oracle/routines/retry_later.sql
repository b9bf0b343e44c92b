procedure retry_later(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_message_ids   in clob default null,
    p_delay_seconds in number default null,
    p_error         in clob default null,
    p_rows          out sys_refcursor
)
is
-- routine   retry_later
-- version   1
-- purpose   Return messages for another attempt after a delay; without an attempt left they are dead.
-- promise   P08 P10 P34 P37 P47
-- locks     the claim row; then message rows: waits for a producer that has just named one as a
--           predecessor; delayed, ready, dead or dedup rows; for cancelled messages as complete;
--           new history rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_claim         t_claim;
    v_messages      t_messages;
    v_rest          t_messages;
    v_cancelled     t_messages;
    v_alive         t_messages;
    v_dead          t_messages;
    v_due_at        t_timestamps;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_ids := internal_read_id_list(p_message_ids);
    internal_check_claim(p_claim_id);
    internal_check_range('delay_seconds', p_delay_seconds, 0, 315360000);
    v_queue := internal_require_queue(p_queue_name);

    internal_pop_claimed(v_queue.queue_id, p_claim_id, v_ids, v_claim, v_messages);
    internal_split_by_cancel(v_messages, v_rest, v_cancelled);
    internal_finish(v_queue, v_cancelled, 'cancelled');
    internal_split_by_attempts(v_queue, v_rest, v_alive, v_dead);
    internal_back_off(v_queue, v_alive, p_delay_seconds, v_due_at);
    internal_record_error(v_queue.queue_id, v_alive, p_error, true);
    internal_push_delayed(v_queue.queue_id, v_alive, v_due_at);
    internal_push_dead(v_queue, v_dead, p_error, true);
    if v_queue.history_days > 0 then
        internal_push_history(v_queue.queue_id, v_claim, v_cancelled, 'cancelled', null);
        internal_push_history(v_queue.queue_id, v_claim, v_alive, 'retrying', p_error);
        internal_push_history(v_queue.queue_id, v_claim, v_dead, 'dead', p_error);
    end if;
    internal_wake_waiters(v_queue.queue_id, v_queue.waiting_until);
    v_lines := internal_retry_outcomes(v_ids, v_messages, v_alive, v_due_at);
    internal_set_outcomes(v_lines, internal_ids_of(v_cancelled), 'cancelled');

    open p_rows for
        select n.message_id, n.outcome, n.due_at
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end retry_later;
