procedure internal_pass_group(
    p_part_id       in number,
    p_group_key     in raw,
    p_is_over       in boolean,
    p_is_left       out boolean,
    p_pause_seconds out number
)
is
-- routine   internal_pass_group
-- purpose   Pass one token of a group on to its next message, or give it back. p_is_left says that this cannot be done now, p_pause_seconds how long the group rests then; p_is_over is true where it has rested.
-- promise   P21 P22 P23 P24
-- locks     grouped and message_group rows, passing over locked ones; new ready rows
    v_group    t_group;
    v_token_no number;
    v_kept_no  number;
    v_next     t_messages;
begin
    p_is_left := false;
    internal_read_group(p_part_id, p_group_key, v_group);
    p_pause_seconds := v_group.pause_seconds;
    if v_group.pause_seconds > 0 and not p_is_over then
        p_is_left := true;
        return;
    end if;

    -- A token beyond a limit that was lowered is given back, whoever waits, as long as another one
    -- stays: one that can be locked is not being given back by somebody else.
    if v_group.tokens.last > v_group.group_limit then
        v_kept_no := internal_lock_token(
            p_part_id, p_group_key, v_group, 1, v_group.group_limit
        );
        if v_kept_no is not null then
            v_token_no := internal_lock_token(
                p_part_id, p_group_key, v_group, v_group.group_limit + 1, v_group.tokens.last
            );
        end if;
    end if;
    if v_token_no is null and v_group.first_id is null then
        -- Nobody waits. Where a token can be locked, nobody is coming either, and who was coming a
        -- moment ago is there by now, so look once more, in a statement of its own.
        v_token_no := internal_lock_token(
            p_part_id, p_group_key, v_group, 1, v_group.tokens.last
        );
        if v_token_no is null then
            p_is_left := true;
            return;
        end if;
        internal_read_group(p_part_id, p_group_key, v_group);
        if v_group.first_id is not null then
            v_token_no := null;
        end if;
    end if;
    if v_token_no is not null then
        delete from rowq_message_group t
        where t.part_id = p_part_id
          and t.group_key = p_group_key
          and t.token_no = v_token_no;
        return;
    end if;

    v_next := internal_pop_next_grouped(p_part_id, p_group_key, v_group);
    p_is_left := v_next.count = 0;
    internal_push_ready(p_part_id, v_next);
    if v_next.count > 0 then
        internal_ring_doorbell(p_part_id, v_group.listened_until);
    end if;
end internal_pass_group;
