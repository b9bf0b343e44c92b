procedure internal_read_group(
    p_part_id   in number,
    p_group_key in raw,
    p_group     out nocopy t_group
)
is
-- routine   internal_read_group
-- purpose   Read the tokens of a group, the first message that waits in it, and the settings that concern it.
-- promise   P21 P22
-- differs   no such helper elsewhere: part of internal_enter_group and internal_pass_group
    v_found t_group_rows;
begin
    select /*+ leading(q t) use_nl(t) index(t rowq_message_group_pk) */
           q.group_limit, q.group_pause_seconds, q.listened_until,
           (
               select min(g.message_id)
               from rowq_grouped g
               where g.part_id = p_part_id
                 and g.group_key = p_group_key
           ) as first_id,
           t.token_no
    bulk collect into v_found
    from rowq_queue q
    left join rowq_message_group t
      on t.part_id = q.part_id
     and t.group_key = p_group_key
    where q.part_id = p_part_id;

    p_group.tokens.delete;
    for i in 1 .. v_found.count loop
        p_group.group_limit := v_found(i).group_limit;
        p_group.pause_seconds := v_found(i).pause_seconds;
        p_group.listened_until := v_found(i).listened_until;
        p_group.first_id := v_found(i).first_id;
        if v_found(i).token_no is not null then
            p_group.tokens(v_found(i).token_no) := v_found(i).token_no;
        end if;
    end loop;
end internal_read_group;
