procedure internal_store_grouped(
    p_part_id in number,
    p_new     in t_new_messages,
    p_ready   in out nocopy t_numbers
)
is
-- routine   internal_store_grouped
-- purpose   Let new messages of groups be ready, or wait behind others; p_ready has the places of those that are due, and keeps those that are ready.
-- promise   P01 P05 P21 P22
-- locks     as internal_join_groups
-- differs   PostgreSQL joins groups in enqueue and enqueue_batch
    v_messages t_messages;
    v_waiting  t_numbers;
    v_place    pls_integer := p_ready.first;
begin
    while v_place is not null loop
        if p_new(v_place).group_key is not null then
            v_messages(v_place).message_id := p_new(v_place).message_id;
            v_messages(v_place).lane := p_new(v_place).lane;
            v_messages(v_place).group_key := p_new(v_place).group_key;
        end if;
        v_place := p_ready.next(v_place);
    end loop;
    internal_join_groups(p_part_id, v_messages, v_waiting);

    v_place := v_waiting.first;
    while v_place is not null loop
        p_ready.delete(v_place);
        v_place := v_waiting.next(v_place);
    end loop;
end internal_store_grouped;
