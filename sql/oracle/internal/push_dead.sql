procedure internal_push_dead(p_part_id in number, p_messages in t_messages, p_error in clob)
is
-- routine   internal_push_dead
-- version   1
-- purpose   Keep messages as dead with the last error; their dedup keys are free again.
-- promise   P10 P12
-- locks     new dead rows; message rows; dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    if p_messages.count = 0 then
        return;
    end if;
    forall i in 1 .. p_messages.count
        insert into rowq_dead (part_id, message_id, lane, attempt, died_at)
        values (
            p_part_id, p_messages(i).message_id, p_messages(i).lane, p_messages(i).attempt, v_now
        );
    internal_note_error(p_part_id, p_messages, p_error);
    internal_release_dedup_keys(p_part_id, p_messages);
end internal_push_dead;
