procedure internal_let_go(
    p_part_id     in number,
    p_message_ids in rowq_ids,
    p_ended_id    in number,
    p_again       out nocopy rowq_ids
)
is
-- routine   internal_let_go
-- purpose   Let blocked messages go on that wait for nothing any more; those that fail with a predecessor are dead. p_again are those that need another look.
-- promise   P25 P26 P27
-- locks     as internal_unblock and internal_follow_deaths
    v_failed rowq_ids;
begin
    internal_unblock(p_part_id, p_message_ids, p_ended_id, p_again, v_failed);
    if v_failed.count > 0 then
        internal_follow_deaths(p_part_id, v_failed);
    end if;
end internal_let_go;
