procedure internal_delete_messages(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_delete_messages
-- purpose   Delete messages for good, with their ties.
-- promise   P04 P12 P22 P26
-- locks     message rows, waiting for who has just named one as a predecessor; as internal_cut_ties
    v_ids        t_numbers;
    v_dedup_keys t_texts;
    v_group_keys t_texts;
    v_awaited    t_numbers;
begin
    forall i in 1 .. p_messages.count
        delete from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = p_messages(i).message_id
        returning m.message_id, m.dedup_key, m.group_key, m.has_successors
        bulk collect into v_ids, v_dedup_keys, v_group_keys, v_awaited;
    internal_cut_ties(p_part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited);
end internal_delete_messages;
