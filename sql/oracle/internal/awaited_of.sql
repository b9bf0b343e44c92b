function internal_awaited_of(p_part_id in number, p_ids in rowq_ids)
return rowq_ids
is
-- routine   internal_awaited_of
-- purpose   Return those of these messages, whose rows the caller has locked, that others wait for, perhaps.
-- promise   P26 P27
-- differs   no such helper elsewhere: part of internal_archive and internal_follow_deaths
    v_awaited rowq_ids;
begin
    -- A statement of its own sees who has come to wait until the rows were locked.
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_awaited
    from table(p_ids) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where m.has_successors = 1;
    return v_awaited;
end internal_awaited_of;
