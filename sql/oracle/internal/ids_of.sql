function internal_ids_of(p_messages in t_messages)
return rowq_ids
is
-- routine   internal_ids_of
-- purpose   Return the ids of messages, as SQL knows a list.
-- differs   no such helper elsewhere: other engines keep messages as a list already
    v_ids rowq_ids := rowq_ids();
begin
    v_ids.extend(p_messages.count);
    for i in 1 .. p_messages.count loop
        v_ids(i) := p_messages(i).message_id;
    end loop;
    return v_ids;
end internal_ids_of;
