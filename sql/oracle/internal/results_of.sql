function internal_results_of(p_messages in t_messages, p_ids in rowq_ids, p_given in t_clobs)
return t_clobs
is
-- routine   internal_results_of
-- purpose   Return the results of messages by their places, null for one without; none where nobody has one. p_given goes along p_ids, or, where these are null, along p_messages. Of a message named twice the first one counts.
-- promise   P32
-- differs   no such helper elsewhere: part of push_result
    v_places  t_places;
    v_place   pls_integer;
    v_results t_clobs;
begin
    if p_ids is null or p_given.count = 0 then
        return p_given;
    end if;
    for i in reverse 1 .. p_ids.count loop
        v_places(internal_number_text(p_ids(i))) := i;
    end loop;
    for i in 1 .. p_messages.count loop
        v_place := v_places(internal_number_text(p_messages(i).message_id));
        v_results(i) := null;
        if p_given.exists(v_place) then
            v_results(i) := p_given(v_place);
        end if;
    end loop;
    return v_results;
end internal_results_of;
