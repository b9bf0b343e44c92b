procedure internal_read_ties(
    p_part_id    in number,
    p_messages   in t_messages,
    p_ids        out nocopy t_numbers,
    p_dedup_keys out nocopy t_texts,
    p_group_keys out nocopy t_texts,
    p_awaited    out nocopy t_numbers
)
is
-- routine   internal_read_ties
-- purpose   Read the ties of those messages that have any, as internal_cut_ties takes them.
-- promise   P12 P22 P26
    v_wanted rowq_ids := internal_ids_of(p_messages);
begin
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */
           m.message_id, m.dedup_key, m.group_key, m.has_successors
    bulk collect into p_ids, p_dedup_keys, p_group_keys, p_awaited
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where m.dedup_key is not null
       or m.group_key is not null
       or m.has_successors = 1;
end internal_read_ties;
