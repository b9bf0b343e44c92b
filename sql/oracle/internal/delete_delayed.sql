procedure internal_delete_delayed(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- routine   internal_delete_delayed
-- version   1
-- purpose   Delete delayed rows that are locked, and append their messages.
-- promise   P03
-- locks     delayed rows, which the caller holds already
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of promote and withdraw
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_delayed d
        where d.rowid = p_locked(i).row_id
          and d.message_id = p_locked(i).message_id;
    -- Only what this very statement has deleted is ours.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
        end if;
    end loop;
end internal_delete_delayed;
