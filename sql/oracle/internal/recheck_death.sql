function internal_recheck_death(p_part_id in number, p_message_id in number)
return boolean
is
-- routine   internal_recheck_death
-- purpose   Look again what waits for a dead message; false where a producer is still adding something that does.
-- promise   P27
-- locks     the message row, tried only; as internal_follow_deaths
    v_locked rowq_ids;
    v_held   rowq_ids;
begin
    internal_lock_messages(p_part_id, rowq_ids(p_message_id), v_locked, v_held);
    if v_held.count > 0 then
        return false;
    end if;
    -- One that was reset meanwhile is waited for as before.
    if v_locked.count > 0 and internal_read_end(p_part_id, p_message_id) = 'dead' then
        internal_follow_deaths(p_part_id, v_locked);
    end if;
    return true;
end internal_recheck_death;
