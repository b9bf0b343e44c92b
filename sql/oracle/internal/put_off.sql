procedure internal_put_off(p_part_id in number, p_messages in t_messages)
is
-- routine   internal_put_off
-- purpose   Let due messages that cannot join their groups yet be due again in half a second; those whose rows a producer holds stay due.
-- promise   P11 P21
-- locks     message rows, passing over locked ones; new delayed rows
-- differs   no such helper elsewhere: part of internal_promote_grouped
    v_later   constant timestamp(6) :=
        sys_extract_utc(systimestamp) + numtodsinterval(0.5, 'second');
    v_wanted  rowq_ids := internal_ids_of(p_messages);
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_ids     t_numbers;
    v_due_ats t_moments;
    v_own     t_places;
    v_moments t_moments;
    v_text    varchar2(50 char);
begin
    if p_messages.count = 0 then
        return;
    end if;
    -- A producer that has named one of them as a predecessor holds its row, and nobody waits for it
    -- here.
    internal_lock_messages(p_part_id, v_wanted, v_locked, v_held);
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.due_at
    bulk collect into v_ids, v_due_ats
    from table(v_held) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value;
    for i in 1 .. v_ids.count loop
        v_own(internal_number_text(v_ids(i))) := i;
    end loop;
    for i in 1 .. p_messages.count loop
        v_text := internal_number_text(p_messages(i).message_id);
        v_moments(i) := case
            when v_own.exists(v_text) then v_due_ats(v_own(v_text))
            else v_later
        end;
    end loop;

    forall i in 1 .. p_messages.count
        insert into rowq_delayed (part_id, due_at, message_id, lane, attempt, group_key)
        values (
            p_part_id, v_moments(i), p_messages(i).message_id, p_messages(i).lane,
            p_messages(i).attempt, p_messages(i).group_key
        );
    forall i in 1 .. v_locked.count
        update rowq_message m
        set m.due_at = v_later
        where m.part_id = p_part_id
          and m.message_id = v_locked(i);
end internal_put_off;
