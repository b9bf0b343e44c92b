procedure internal_delete_dedup_keys(
    p_part_id in number,
    p_ids     in t_numbers,
    p_keys    in t_texts
)
is
-- routine   internal_delete_dedup_keys
-- version   1
-- purpose   Free dedup keys of messages, one key a message; null where it has none.
-- promise   P12
-- locks     dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_ids  t_numbers;
    v_keys t_keys;
begin
    for i in 1 .. p_keys.count loop
        if p_keys(i) is not null then
            v_ids(v_ids.count + 1) := p_ids(i);
            v_keys(v_keys.count + 1) := utl_raw.cast_to_raw(p_keys(i));
        end if;
    end loop;

    -- Another message may have the key by now: a dead one gives it up.
    forall i in 1 .. v_keys.count
        delete from rowq_dedup d
        where d.part_id = p_part_id
          and d.dedup_key = v_keys(i)
          and d.message_id = v_ids(i);
end internal_delete_dedup_keys;
