procedure internal_push_recheck(
    p_part_id   in number,
    p_group_key in raw,
    p_seconds   in number,
    p_is_hint   in number
)
is
-- routine   internal_push_recheck
-- purpose   Have maintain, and each dequeue that finds nothing, look at a group in p_seconds.
-- promise   P24
-- locks     the new recheck row; the first time its lane, passed over when locked
-- differs   no such helper elsewhere: part of leave_groups and hint_groups
begin
    internal_open_lanes(p_part_id, -4 /* deferred */);
    insert into rowq_recheck (part_id, due_at, recheck_id, group_key, is_hint)
    values (
        p_part_id, sys_extract_utc(systimestamp) + numtodsinterval(p_seconds, 'second'),
        rowq_claim_seq.nextval, p_group_key, p_is_hint
    );
end internal_push_recheck;
