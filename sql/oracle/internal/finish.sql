procedure internal_finish(
    p_part_id      in number,
    p_archive_days in number,
    p_messages     in t_messages,
    p_state        in varchar2
)
is
-- routine   internal_finish
-- version   1
-- purpose   Remove finished messages, or note them for the archive.
-- promise   P04 P12
-- locks     message rows; dedup rows; new finished rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_now       constant timestamp(6) := sys_extract_utc(systimestamp);
    v_finish_id rowq_finished.finish_id%type;
begin
    if p_messages.count = 0 then
        return;
    end if;
    if p_archive_days = 0 then
        internal_delete_messages(p_part_id, p_messages);
        return;
    end if;

    v_finish_id := rowq_claim_seq.nextval;
    forall i in 1 .. p_messages.count
        insert into rowq_finished (
            part_id, finish_id, message_id, lane, attempt, state, finished_at
        )
        values (
            p_part_id, v_finish_id, p_messages(i).message_id, p_messages(i).lane,
            p_messages(i).attempt, p_state, v_now
        );
    internal_release_dedup_keys(p_part_id, p_messages);
end internal_finish;
