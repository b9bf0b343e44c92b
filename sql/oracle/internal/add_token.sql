function internal_add_token(
    p_part_id   in number,
    p_group_key in raw,
    p_group     in t_group
)
return boolean
is
-- routine   internal_add_token
-- purpose   Give a group the first token that it does not have; return false where another session has just done that, or has lowered the limit.
-- promise   P22
-- locks     the new message_group row; waits for a session that adds the same one
-- differs   no such helper elsewhere: part of internal_enter_group
    v_token_no pls_integer := 1;
    v_newest   rowq_queue.group_limit%type;
begin
    while p_group.tokens.exists(v_token_no) loop
        v_token_no := v_token_no + 1;
    end loop;
    insert into rowq_message_group (part_id, group_key, token_no)
    values (p_part_id, p_group_key, v_token_no);

    -- That may have waited, so what counts is the limit that is read after it. Any leaves room for
    -- one.
    if p_group.group_limit = 1 then
        return true;
    end if;
    select q.group_limit into v_newest
    from rowq_queue q
    where q.part_id = p_part_id;
    if v_newest >= p_group.group_limit then
        return true;
    end if;
    delete from rowq_message_group t
    where t.part_id = p_part_id
      and t.group_key = p_group_key
      and t.token_no = v_token_no;
    return false;
exception
    when dup_val_on_index then
        return false;
end internal_add_token;
