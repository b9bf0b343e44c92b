procedure complete(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob default null,
    p_results     in clob default null,
    p_rows        out sys_refcursor
)
is
-- routine   complete
-- version   1
-- purpose   Finish messages: delete or archive them, and never deliver them again.
-- promise   P04 P08 P21 P22 P23 P24 P26 P32 P37
-- locks     the claim row; then dedup rows; message rows, rows of groups and of waiting messages,
--           skipping locked ones; new result, history and deferred rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_queue         t_queue;
    v_ids           rowq_ids;
    v_claim         t_claim;
    v_messages      t_messages;
    v_given         t_clobs;
    v_results       t_clobs;
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_ids := internal_read_id_list(p_message_ids);
    internal_check_claim(p_claim_id);
    v_queue := internal_require_queue(p_queue_name);
    if p_results is not null then
        internal_read_results(
            p_results, case when v_ids is null then 1 else v_ids.count end, v_queue, v_given
        );
    end if;

    internal_pop_claimed(v_queue.queue_id, p_claim_id, v_ids, v_claim, v_messages);
    if p_results is not null and v_ids is null and v_messages.count > 1 then
        internal_refuse('results without message_ids requires a claim of exactly one message');
    end if;
    internal_finish(v_queue, v_messages, 'completed');
    if v_queue.result_seconds > 0 then
        v_results := internal_results_of(v_messages, v_ids, v_given);
        internal_push_result(v_queue.queue_id, v_messages, 'completed', null, v_results);
    end if;
    if v_queue.history_days > 0 then
        internal_push_history(v_queue.queue_id, v_claim, v_messages, 'completed', null);
    end if;
    v_lines := internal_outcomes(v_ids, v_messages, 'completed');

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end complete;
