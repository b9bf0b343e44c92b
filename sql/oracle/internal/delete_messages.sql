procedure internal_delete_messages(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_delete_messages
-- purpose   Delete messages for good, with their ties; leave to maintain the rows that another transaction has locked.
-- promise   P04 P12 P22 P26
-- locks     message rows, tried only; as internal_cut_ties; new recheck rows
    v_wanted     rowq_ids := internal_ids_of(p_messages);
    v_locked     rowq_ids;
    v_held       rowq_ids;
    v_left       t_messages;
    v_ids        t_numbers;
    v_dedup_keys t_texts;
    v_group_keys t_texts;
    v_awaited    t_numbers;
begin
    internal_lock_messages(p_part_id, v_wanted, v_locked, v_held);
    forall i in 1 .. v_locked.count
        delete from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = v_locked(i)
        returning m.message_id, m.dedup_key, m.group_key, m.has_successors
        bulk collect into v_ids, v_dedup_keys, v_group_keys, v_awaited;
    internal_cut_ties(p_part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited);

    if v_held.count > 0 then
        -- A producer names one as a predecessor, perhaps, and may never commit. The message has
        -- ended all the same, so only its row is left, and what that producer adds.
        internal_recheck_later(p_part_id, v_held, v_held, 0);
        for i in 1 .. v_held.count loop
            v_left(i).message_id := v_held(i);
        end loop;
        internal_read_ties(p_part_id, v_left, v_ids, v_dedup_keys, v_group_keys, v_awaited);
        internal_cut_ties(p_part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited);
    end if;
end internal_delete_messages;
