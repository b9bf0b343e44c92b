function internal_add_token(
    p_part_id   in number,
    p_group_key in raw,
    p_group     in t_group
)
return boolean
is
-- routine   internal_add_token
-- purpose   Give a group the first token that it does not have; return false where another session has just done that.
-- promise   P22
-- locks     the new message_group row; waits for a session that adds the same one
-- differs   no such helper elsewhere: part of internal_enter_group
    v_token_no pls_integer := 1;
begin
    while p_group.tokens.exists(v_token_no) loop
        v_token_no := v_token_no + 1;
    end loop;
    insert into rowq_message_group (part_id, group_key, token_no)
    values (p_part_id, p_group_key, v_token_no);
    return true;
exception
    when dup_val_on_index then
        return false;
end internal_add_token;
