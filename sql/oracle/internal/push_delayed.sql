procedure internal_push_delayed(
    p_part_id  in number,
    p_messages in t_messages,
    p_due_at   in t_moments,
    p_error    in clob
)
is
-- routine   internal_push_delayed
-- purpose   Let messages wait for their time; those that are due are ready at once.
-- promise   P10 P11 P36
-- locks     message rows, waited for; new delayed, ready and expiry rows
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_later   t_messages;
    v_moments t_moments;
    v_due     t_messages;
    v_message t_message;
    v_seqs    t_numbers;
begin
    internal_note_error(p_part_id, p_messages, p_error, true);
    for i in 1 .. p_messages.count loop
        v_message := p_messages(i);
        v_message.lane := trunc(v_message.lane / 2) * 2 + 1;
        if p_due_at(i) > v_now then
            v_later(v_later.count + 1) := v_message;
            v_moments(v_later.count) := p_due_at(i);
        else
            v_due(v_due.count + 1) := v_message;
        end if;
    end loop;

    forall i in 1 .. v_later.count
        insert into rowq_delayed (part_id, due_at, message_id, lane, attempt)
        values (
            p_part_id, v_moments(i), v_later(i).message_id, v_later(i).lane, v_later(i).attempt
        );
    forall i in 1 .. v_later.count
        update rowq_message m
        set m.due_at = v_moments(i)
        where m.part_id = p_part_id
          and m.message_id = v_later(i).message_id;
    internal_note_expiry(p_part_id, v_later, v_seqs);
    internal_push_ready(p_part_id, v_due);
end internal_push_delayed;
