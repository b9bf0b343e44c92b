procedure internal_recheck_later(
    p_part_id         in number,
    p_message_ids     in rowq_ids,
    p_predecessor_ids in rowq_ids,
    p_are_dead        in number
)
is
-- routine   internal_recheck_later
-- purpose   Have maintain look again at blocked messages, or at what waits for predecessors that have ended; the same ids as both are messages that have ended, and whose rows another transaction has locked.
-- promise   P26
-- locks     new recheck rows; the first time its lane, passed over when locked
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    internal_open_lanes(p_part_id, -4 /* deferred */);
    if p_message_ids is not null and p_predecessor_ids is not null then
        forall i in 1 .. p_message_ids.count
            insert into rowq_recheck (part_id, due_at, recheck_id, message_id, predecessor_id)
            values (
                p_part_id, v_now, rowq_claim_seq.nextval, p_message_ids(i), p_predecessor_ids(i)
            );
    elsif p_message_ids is not null then
        forall i in 1 .. p_message_ids.count
            insert into rowq_recheck (part_id, due_at, recheck_id, message_id)
            values (p_part_id, v_now, rowq_claim_seq.nextval, p_message_ids(i));
    else
        forall i in 1 .. p_predecessor_ids.count
            insert into rowq_recheck (part_id, due_at, recheck_id, predecessor_id, is_hint)
            values (p_part_id, v_now, rowq_claim_seq.nextval, p_predecessor_ids(i), p_are_dead);
    end if;
end internal_recheck_later;
