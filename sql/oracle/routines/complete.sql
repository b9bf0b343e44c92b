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
-- promise   P04 P08 P21 P22 P23 P24 P26 P32 P37 P49
-- locks     the claim row; then dedup rows; message rows, rows of groups and of waiting messages,
--           skipping locked ones; new result, history and deferred rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    v_lines         rowq_lines;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_complete_claim(p_queue_name, p_claim_id, p_message_ids, p_results, v_lines);

    open p_rows for
        select n.message_id, n.outcome
        from table(v_lines) n
        order by n.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end complete;
