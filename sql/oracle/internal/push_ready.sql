procedure internal_push_ready(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_push_ready
-- purpose   Append messages to lanes, in their order, under new places.
-- promise   P02 P14 P36
-- locks     new ready and expiry rows
    v_seq   constant number := internal_microseconds(sys_extract_utc(systimestamp));
    v_places t_numbers;
begin
    for i in 1 .. p_messages.count loop
        v_places(i) := v_seq + i;
    end loop;
    forall i in 1 .. p_messages.count
        insert into rowq_ready (part_id, lane, seq, message_id, attempt)
        values (
            p_part_id, p_messages(i).lane, v_places(i), p_messages(i).message_id,
            p_messages(i).attempt
        );
    internal_note_expiry(p_part_id, p_messages, v_places);
end internal_push_ready;
