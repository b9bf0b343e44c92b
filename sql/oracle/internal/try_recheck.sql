function internal_try_recheck(
    p_part_id        in number,
    p_group_key      in raw,
    p_message_id     in number,
    p_predecessor_id in number,
    p_is_hint        in number
)
return boolean
is
-- routine   internal_try_recheck
-- purpose   Look again at what a row of recheck names; return whether that was enough.
-- promise   P22 P24 P26 P27
-- locks     as internal_pass_group, internal_widen_group, internal_let_go,
--           internal_free_successors, internal_recheck_death and internal_lock_messages
-- differs   no such helper elsewhere: part of internal_recheck
    v_again         rowq_ids;
    v_locked        rowq_ids;
    v_held          rowq_ids;
    v_is_left       boolean;
    v_pause_seconds number;
begin
    if p_message_id = p_predecessor_id then
        -- It has ended, and its row was locked. Its keys were freed then.
        internal_lock_messages(p_part_id, rowq_ids(p_message_id), v_locked, v_held);
        if v_held.count > 0 then
            return false;
        end if;
        delete from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = p_message_id;
        internal_free_successors(p_part_id, p_message_id);
        return true;
    end if;
    if p_message_id is not null then
        internal_let_go(p_part_id, rowq_ids(p_message_id), null, v_again);
        return v_again.count = 0;
    end if;
    if p_predecessor_id is not null then
        if p_is_hint = 1 then
            return internal_recheck_death(p_part_id, p_predecessor_id);
        end if;
        internal_free_successors(p_part_id, p_predecessor_id);
        return true;
    end if;
    if p_is_hint = 1 then
        return internal_widen_group(p_part_id, p_group_key);
    end if;
    internal_pass_group(p_part_id, p_group_key, true, v_is_left, v_pause_seconds);
    return not v_is_left;
end internal_try_recheck;
