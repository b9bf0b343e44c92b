function internal_lock_token(
    p_part_id   in number,
    p_group_key in raw,
    p_group     in t_group,
    p_from      in number,
    p_to        in number
)
return number
is
-- routine   internal_lock_token
-- purpose   Lock the highest token of a group from p_from to p_to that nobody holds; return its number, or null.
-- promise   P22 P24
-- locks     a message_group row, passing over locked ones
-- differs   no such helper elsewhere: part of internal_pass_group
    -- ORA-08177: this transaction is serializable, and a message has joined the group since then.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_token_no number := p_group.tokens.last;
    v_held     rowq_message_group.token_no%type;
    cursor token_row is
        select t.token_no
        from rowq_message_group t
        where t.part_id = p_part_id
          and t.group_key = p_group_key
          and t.token_no = v_token_no
        for update skip locked;
begin
    while v_held is null and v_token_no >= p_from loop
        if v_token_no <= p_to then
            open token_row;
            fetch token_row into v_held;
            close token_row;
        end if;
        v_token_no := p_group.tokens.prior(v_token_no);
    end loop;
    return v_held;
exception
    when e_not_serial then
        return null;
end internal_lock_token;
