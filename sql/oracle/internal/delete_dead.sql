procedure internal_delete_dead(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- routine   internal_delete_dead
-- purpose   Delete dead rows that are locked, and append their messages.
-- promise   P03
-- locks     dead rows, which the caller holds already
-- differs   no such helper elsewhere: part of reset and pop_waiting
    v_next  pls_integer := p_messages.count;
    v_hit   pls_integer := 0;
    v_holds t_numbers;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_dead d
        where d.rowid = p_locked(i).row_id
          and d.message_id = p_locked(i).message_id
        returning d.holds_group bulk collect into v_holds;
    -- Take a message only if this statement has deleted its row, so that no other session has the
    -- message too.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            v_hit := v_hit + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
            p_messages(v_next).is_tokenless := case when v_holds(v_hit) = 1 then 0 else 1 end;
        end if;
    end loop;
end internal_delete_dead;
