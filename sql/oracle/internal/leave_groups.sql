procedure internal_leave_groups(p_part_id in number, p_group_keys in t_keys)
is
-- routine   internal_leave_groups
-- purpose   Pass on the tokens of messages that have ended, one for each element; leave to maintain those that cannot be passed on now.
-- promise   P22 P24
-- locks     as internal_pass_group; new recheck rows
    v_is_left       boolean;
    v_pause_seconds number;
begin
    for i in 1 .. p_group_keys.count loop
        internal_pass_group(p_part_id, p_group_keys(i), false, v_is_left, v_pause_seconds);
        if v_is_left then
            internal_push_recheck(p_part_id, p_group_keys(i), v_pause_seconds, 0);
        end if;
    end loop;
end internal_leave_groups;
