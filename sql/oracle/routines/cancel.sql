procedure cancel(
    p_queue_name     in varchar2,
    p_message_ids    in clob,
    p_include_leased in number default 0,
    p_rows           out sys_refcursor
)
is
-- routine   cancel
-- version   1
-- purpose   Cancel messages that no worker holds, dead ones included.
-- promise   P15 P34
-- locks     claim rows, if include_leased, then blocked, delayed, ready, group_waiting, dead rows,
--           skipping locked ones; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is searched for among all ready messages of the
--           queue
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_noted         rowq_ids := rowq_ids();
    v_rest          rowq_ids;
    v_messages      t_messages;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    if p_message_ids is null then
        internal_refuse('message_ids is required');
    end if;
    v_ids := internal_read_id_list(p_message_ids);
    if p_include_leased not in (0, 1) then
        internal_refuse('include_leased must be 0 or 1');
    end if;
    v_queue := internal_require_queue(p_queue_name);

    -- Check the claims first: leased messages are not searched for among the ready ones.
    v_rest := v_ids;
    if p_include_leased = 1 then
        internal_record_cancels(v_queue.queue_id, v_ids, v_noted, v_rest);
    end if;
    v_messages := internal_pop_waiting(v_queue.queue_id, v_rest);
    internal_finish(v_queue, v_messages, 'cancelled');
    v_lines := internal_outcomes(v_ids, v_messages, 'cancelled', 'not_found');
    internal_set_outcomes(v_lines, v_noted, 'requested');
    internal_set_leased(v_queue.queue_id, v_lines);

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end cancel;
