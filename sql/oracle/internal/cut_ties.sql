procedure internal_cut_ties(
    p_part_id    in number,
    p_messages   in t_messages,
    p_ids        in t_numbers,
    p_dedup_keys in t_texts,
    p_group_keys in t_texts,
    p_awaited    in t_numbers
)
is
-- routine   internal_cut_ties
-- purpose   Free what messages had that have ended: their dedup keys, their tokens but for those that are tokenless, and what waits for those that p_awaited has as 1. Each place of the lists is one message; null where it has no such tie.
-- promise   P12 P22 P26
-- locks     dedup rows; as internal_leave_groups and internal_free_successors; new recheck rows
    v_began      constant timestamp(6) := sys_extract_utc(systimestamp);
    v_ids        t_numbers;
    v_keys       t_keys;
    v_tokenless  t_places;
    v_group_keys t_keys;
begin
    for i in 1 .. p_ids.count loop
        if p_dedup_keys(i) is not null then
            v_ids(v_ids.count + 1) := p_ids(i);
            v_keys(v_keys.count + 1) := utl_raw.cast_to_raw(p_dedup_keys(i));
        end if;
    end loop;
    -- Compare message_id too, because another message may have the key by now: a dead message gives
    -- its key up.
    forall i in 1 .. v_keys.count
        delete from rowq_dedup d
        where d.part_id = p_part_id
          and d.dedup_key = v_keys(i)
          and d.message_id = v_ids(i);

    for i in 1 .. p_messages.count loop
        if p_messages(i).is_tokenless = 1 then
            v_tokenless(internal_number_text(p_messages(i).message_id)) := i;
        end if;
    end loop;
    for i in 1 .. p_ids.count loop
        if p_group_keys(i) is not null
           and not v_tokenless.exists(internal_number_text(p_ids(i))) then
            v_group_keys(v_group_keys.count + 1) := utl_raw.cast_to_raw(p_group_keys(i));
        end if;
    end loop;
    internal_leave_groups(p_part_id, v_group_keys);
    for i in 1 .. p_ids.count loop
        -- Many messages may have ended, each with a thousand others that wait: leave what takes
        -- long to maintain.
        if p_awaited(i) = 1
           and internal_seconds_since(v_began, sys_extract_utc(systimestamp)) > 0.5 then
            internal_recheck_later(p_part_id, null, rowq_ids(p_ids(i)), 0);
        elsif p_awaited(i) = 1 then
            internal_free_successors(p_part_id, p_ids(i));
        end if;
    end loop;
end internal_cut_ties;
