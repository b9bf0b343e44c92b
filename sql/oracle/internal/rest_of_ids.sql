function internal_rest_of_ids(
    p_part_id  in number,
    p_ids      in rowq_ids,
    p_messages in t_messages
)
return t_messages
is
-- routine   internal_rest_of_ids
-- purpose   Return the messages with these ids that are there and not among p_messages, with their group_key.
-- differs   no such helper elsewhere: part of internal_pop_waiting
    v_ids    t_numbers;
    v_groups t_texts;
    v_found  t_places;
    v_rest   t_messages;
    v_next   pls_integer := 0;
begin
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.group_key
    bulk collect into v_ids, v_groups
    from table(p_ids) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value;
    for i in 1 .. p_messages.count loop
        v_found(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    for i in 1 .. v_ids.count loop
        if not v_found.exists(internal_number_text(v_ids(i))) then
            v_next := v_next + 1;
            v_rest(v_next).message_id := v_ids(i);
            v_rest(v_next).group_key := v_groups(i);
        end if;
    end loop;
    return v_rest;
end internal_rest_of_ids;
