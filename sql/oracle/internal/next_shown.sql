function internal_next_shown(p_part_id in number, p_ids in rowq_ids, p_from in number)
return number
is
-- routine   internal_next_shown
-- purpose   Return the place of the first of these messages, from p_from on, that has a body; null where none has.
-- promise   P25
-- differs   no such helper elsewhere: part of internal_await_predecessor
    -- Look for some at a time, because the first one is nearly always there.
    c_step   constant pls_integer := 100;
    v_from   pls_integer := p_from;
    v_to     pls_integer;
    v_some   rowq_ids;
    v_shown  t_numbers;
    v_places t_places;
begin
    while v_from <= p_ids.count loop
        v_to := least(v_from + c_step - 1, p_ids.count);
        v_some := rowq_ids();
        for i in v_from .. v_to loop
            v_some.extend;
            v_some(v_some.last) := p_ids(i);
        end loop;
        select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
        bulk collect into v_shown
        from table(v_some) a
        join rowq_message m
          on m.part_id = p_part_id
         and m.message_id = a.column_value;
        for i in 1 .. v_shown.count loop
            v_places(internal_number_text(v_shown(i))) := i;
        end loop;
        for i in v_from .. v_to loop
            if v_places.exists(internal_number_text(p_ids(i))) then
                return i;
            end if;
        end loop;
        v_from := v_to + 1;
    end loop;
    return null;
end internal_next_shown;
