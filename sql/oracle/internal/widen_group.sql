function internal_widen_group(p_part_id in number, p_group_key in raw)
return boolean
is
-- routine   internal_widen_group
-- purpose   Give a group in which messages wait the tokens that it may have; return false where another look is needed.
-- promise   P22 P24
-- locks     the group's door and its message_group rows, passing over locked ones; new
--           message_group rows; as internal_leave_groups
    v_group    t_group;
    v_keys     t_keys;
    v_locked   t_numbers;
    v_has_door boolean;
    v_is_taken boolean;
begin
    v_keys(1) := p_group_key;
    loop
        internal_read_group(p_part_id, p_group_key, v_group);
        if v_group.first_id is null then
            return true;
        end if;
        exit when v_group.tokens.count >= v_group.group_limit;
        -- Without the door a producer may be opening the group, and a worker does not wait for it.
        v_has_door := internal_lock_door(p_part_id, p_group_key);
        if not v_has_door then
            return false;
        end if;
        v_is_taken := internal_add_token(p_part_id, p_group_key, v_group);
        if not v_is_taken then
            return false;
        end if;
        internal_leave_groups(p_part_id, v_keys);
    end loop;

    -- A token that can be locked is not being given back, and whoever ends its message sees those
    -- that wait, because they are committed by now.
    v_locked := internal_lock_tokens(p_part_id, p_group_key);
    return v_locked.count > 0;
end internal_widen_group;
