procedure internal_pop_blocked(
    p_part_id  in number,
    p_ids      in t_numbers,
    p_lanes    in t_numbers,
    p_messages in out nocopy t_messages
)
is
-- routine   internal_pop_blocked
-- purpose   Delete blocked rows that are locked, and append their messages.
-- promise   P03
-- locks     blocked rows, which the caller holds already
-- differs   no such helper on PostgreSQL: part of purge_queue and internal_pop_waiting
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_ids.count
        delete from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id = p_ids(i);
    -- Take a message only if this statement has deleted its row, so that no other session has the
    -- message too.
    for i in 1 .. p_ids.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            p_messages(v_next).message_id := p_ids(i);
            p_messages(v_next).lane := p_lanes(i);
            p_messages(v_next).attempt := 0;
            p_messages(v_next).is_tokenless := 1;
        end if;
    end loop;
end internal_pop_blocked;
