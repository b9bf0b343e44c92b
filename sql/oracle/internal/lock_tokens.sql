function internal_lock_tokens(p_part_id in number, p_group_key in raw)
return t_numbers
is
-- routine   internal_lock_tokens
-- purpose   Lock those tokens of a group that nobody holds; return their numbers.
-- promise   P24
-- locks     message_group rows, passing over locked ones
-- differs   no such helper elsewhere: part of internal_enter_group, which locks them shared
    -- ORA-08177: this transaction is serializable, and a message has joined the group since then.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_most constant pls_integer := 100;
    v_locked t_numbers;
    cursor token_rows is
        select /*+ index_rs_asc(t rowq_message_group_pk) no_batch_table_access_by_rowid(t) */
               t.token_no
        from rowq_message_group t
        where t.part_id = p_part_id
          and t.group_key = p_group_key
        order by t.part_id, t.group_key, t.token_no
        for update skip locked;
begin
    open token_rows;
    fetch token_rows bulk collect into v_locked limit c_most;
    close token_rows;
    return v_locked;
exception
    when e_not_serial then
        v_locked.delete;
        return v_locked;
end internal_lock_tokens;
