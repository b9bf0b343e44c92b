procedure internal_finish(
    p_queue    in t_queue,
    p_messages in t_messages,
    p_state    in varchar2
)
is
-- routine   internal_finish
-- purpose   Remove finished messages, or note them for the archive; keep how they have ended where their queue wants that.
-- promise   P04 P12 P22 P26 P32
-- locks     as internal_delete_messages and internal_cut_ties; new finished rows; result rows
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_finish_id  rowq_finished.finish_id%type;
    v_ids        t_numbers;
    v_dedup_keys t_texts;
    v_group_keys t_texts;
    v_awaited    t_numbers;
    v_results    t_clobs;
begin
    if p_messages.count = 0 then
        return;
    end if;
    if p_queue.archive_days = 0 then
        internal_delete_messages(p_queue.part_id, p_messages);
    else
        v_finish_id := rowq_claim_seq.nextval;
        forall i in 1 .. p_messages.count
            insert into rowq_finished (
                part_id, finish_id, message_id, lane, attempt, state, finished_at
            )
            values (
                p_queue.part_id, v_finish_id, p_messages(i).message_id, p_messages(i).lane,
                p_messages(i).attempt, p_state, v_now
            );
        -- What waits for one of them and is not committed yet is left to internal_archive.
        internal_read_ties(
            p_queue.part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited
        );
        internal_cut_ties(
            p_queue.part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited
        );
    end if;
    if p_queue.result_seconds > 0 and p_state <> 'completed' then
        internal_push_result(p_queue.part_id, p_messages, p_state, null, v_results);
    end if;
end internal_finish;
