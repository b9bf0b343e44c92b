function internal_pop_next_grouped(
    p_part_id   in number,
    p_group_key in raw,
    p_group     in t_group
)
return t_messages
is
-- routine   internal_pop_next_grouped
-- purpose   Take the first message that waits in a group out of it; with a limit above 1, where another session holds that one, the next one that nobody holds. None where that cannot be done.
-- promise   P21 P22
-- locks     a grouped row, passing over locked ones
-- differs   no such helper elsewhere: part of internal_pass_group
    -- ORA-08177: this transaction is serializable, and another has held the row since it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_greatest constant number := 9999999999999999999;
    -- With a limit of 1 nobody is taken instead, because a message that is being cancelled may
    -- stay, and must not be overtaken.
    v_last_id  constant number := case
        when p_group.group_limit = 1 then p_group.first_id
        else c_greatest
    end;
    v_next     t_messages;
    v_id       rowq_grouped.message_id%type;
    v_lane     rowq_grouped.lane%type;
    cursor next_rows is
        select /*+ index_rs_asc(g rowq_grouped_pk) no_batch_table_access_by_rowid(g) */
               g.message_id, g.lane
        from rowq_grouped g
        where g.part_id = p_part_id
          and g.group_key = p_group_key
          and g.message_id between p_group.first_id and v_last_id
        order by g.part_id, g.group_key, g.message_id
        for update skip locked;
begin
    begin
        open next_rows;
        fetch next_rows into v_id, v_lane;
        close next_rows;
    exception
        when e_not_serial then
            return v_next;
    end;
    if v_id is null then
        return v_next;
    end if;

    delete from rowq_grouped g
    where g.part_id = p_part_id
      and g.group_key = p_group_key
      and g.message_id = v_id;
    -- Another session may have taken the message after the cursor was opened.
    if sql%rowcount = 0 then
        return v_next;
    end if;
    v_next(1).message_id := v_id;
    v_next(1).lane := v_lane;
    v_next(1).attempt := 0;
    return v_next;
end internal_pop_next_grouped;
