function internal_enter_group(
    p_part_id   in number,
    p_group_key in raw,
    p_may_wait  in boolean
)
return boolean
is
-- routine   internal_enter_group
-- purpose   Take a token of a group: true with one, false where the message has to wait behind others, null where it must not wait and another session may be opening the group.
-- promise   P21 P22 P24
-- locks     the group's door and its message_group rows, passing over locked ones; a new
--           message_group row, which waits for who opens the group; a new recheck row
-- differs   no row can be locked shared here: who can lock no token leaves a hint for maintain
    -- The tries are limited for a serializable transaction, which never sees the token that it
    -- collides with.
    c_most_tries constant pls_integer := 3;
    v_now      constant timestamp(6) := sys_extract_utc(systimestamp);
    v_group    t_group;
    v_locked   t_numbers;
    v_has_door boolean;
    v_is_taken boolean;
begin
    for turn in 1 .. c_most_tries loop
        internal_read_group(p_part_id, p_group_key, v_group);
        if v_group.tokens.count >= v_group.group_limit then
            v_locked := internal_lock_tokens(p_part_id, p_group_key);
            if v_locked.count > 0 then
                -- Nobody gives back a token that is locked to the end of this transaction, so who
                -- ends its message sees this one, or leaves the token to maintain.
                forall i in 1 .. v_locked.count
                    update rowq_message_group t
                    set t.joined_at = v_now
                    where t.part_id = p_part_id
                      and t.group_key = p_group_key
                      and t.token_no = v_locked(i);
                return false;
            end if;
            exit;
        end if;

        -- A message that waits although there is room comes before this one, and has a hint: it
        -- will have its turn. With a limit above 1 their order is not kept.
        exit when v_group.first_id is not null and v_group.group_limit = 1;
        v_has_door := internal_lock_door(p_part_id, p_group_key);
        if not (v_has_door or p_may_wait) then
            return null;
        end if;
        v_is_taken := internal_add_token(p_part_id, p_group_key, v_group);
        if v_is_taken then
            return true;
        end if;
    end loop;

    -- This transaction holds no token, so the last one may be given back by a session that has not
    -- seen the message. Let maintain look whether it waits behind nobody.
    internal_push_recheck(p_part_id, p_group_key, 0, 1);
    return false;
end internal_enter_group;
