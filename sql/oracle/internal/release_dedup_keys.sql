procedure internal_release_dedup_keys(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_release_dedup_keys
-- version   1
-- purpose   Free the dedup keys of messages that are finished or dead.
-- promise   P12
-- locks     dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_wanted rowq_ids := internal_ids_of(p_messages);
    v_ids    t_numbers;
    v_keys   t_texts;
begin
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.dedup_key
    bulk collect into v_ids, v_keys
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where m.dedup_key is not null;
    internal_delete_dedup_keys(p_part_id, v_ids, v_keys);
end internal_release_dedup_keys;
