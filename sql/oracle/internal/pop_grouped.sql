procedure internal_pop_grouped(
    p_part_id  in number,
    p_wanted   in t_messages,
    p_messages in out nocopy t_messages
)
is
-- routine   internal_pop_grouped
-- purpose   Take those of the wanted messages out of their groups that wait there and that nobody holds, and append them.
-- promise   P03
-- locks     grouped rows, passing over locked ones
-- differs   no such helper on PostgreSQL: part of internal_pop_waiting
    v_key  raw(800);
    v_id   rowq_grouped.message_id%type;
    v_lane rowq_grouped.lane%type;
    v_next pls_integer := p_messages.count;
    cursor grouped_row is
        select g.lane
        from rowq_grouped g
        where g.part_id = p_part_id
          and g.group_key = v_key
          and g.message_id = v_id
        for update skip locked;
begin
    for i in 1 .. p_wanted.count loop
        v_lane := null;
        if p_wanted(i).group_key is not null then
            v_key := utl_raw.cast_to_raw(p_wanted(i).group_key);
            v_id := p_wanted(i).message_id;
            open grouped_row;
            fetch grouped_row into v_lane;
            close grouped_row;
        end if;
        if v_lane is not null then
            delete from rowq_grouped g
            where g.part_id = p_part_id
              and g.group_key = v_key
              and g.message_id = v_id;
            -- Another session may have taken the message after the cursor was opened.
            continue when sql%rowcount = 0;
            v_next := v_next + 1;
            p_messages(v_next).message_id := v_id;
            p_messages(v_next).lane := v_lane;
            p_messages(v_next).attempt := 0;
            p_messages(v_next).is_tokenless := 1;
        end if;
    end loop;
end internal_pop_grouped;
