procedure internal_promote_grouped(
    p_part_id  in number,
    p_messages in out nocopy t_messages,
    p_joined   out number
)
is
-- routine   internal_promote_grouped
-- purpose   Let due messages join their groups: p_messages are afterwards those for the caller to make ready, p_joined is how many of the others wait in their groups now. What must not wait for a producer is due again in half a second.
-- promise   P11 P21 P22
-- locks     as internal_enter_group and internal_put_off; new grouped rows
-- differs   no such helper on PostgreSQL: part of internal_promote
    v_key       raw(800);
    v_has_token boolean;
    v_ready     t_messages;
    v_late      t_messages;
begin
    p_joined := 0;
    for i in 1 .. p_messages.count loop
        v_has_token := true;
        if p_messages(i).group_key is not null then
            v_key := utl_raw.cast_to_raw(p_messages(i).group_key);
            v_has_token := internal_enter_group(p_part_id, v_key, false);
        end if;
        if v_has_token is null then
            v_late(v_late.count + 1) := p_messages(i);
        elsif v_has_token then
            v_ready(v_ready.count + 1) := p_messages(i);
        else
            insert into rowq_grouped (part_id, group_key, message_id, lane)
            values (p_part_id, v_key, p_messages(i).message_id, p_messages(i).lane);
            p_joined := p_joined + 1;
        end if;
    end loop;
    p_messages := v_ready;
    internal_put_off(p_part_id, v_late);
end internal_promote_grouped;
