procedure internal_delete_messages(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_delete_messages
-- version   1
-- purpose   Delete messages for good, with their dedup keys.
-- promise   P04 P12
-- locks     message rows; dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_ids  t_numbers;
    v_keys t_texts;
begin
    forall i in 1 .. p_messages.count
        delete from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = p_messages(i).message_id
        returning m.message_id, m.dedup_key bulk collect into v_ids, v_keys;
    internal_delete_dedup_keys(p_part_id, v_ids, v_keys);
end internal_delete_messages;
