procedure internal_hint_groups(p_part_id in number)
is
-- routine   internal_hint_groups
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- promise   P24
-- locks     new recheck rows
    -- v_from is the least key that is greater than the last group's: that one and a zero byte.
    v_from raw(801) := hextoraw('00');
    v_key  rowq_grouped.group_key%type;
    cursor next_rows is
        select /*+ index_rs_asc(g rowq_grouped_pk) */ g.group_key
        from rowq_grouped g
        where g.part_id = p_part_id
          and g.group_key >= v_from
        order by g.part_id, g.group_key, g.message_id;
begin
    -- Go from group to group and not from message to message.
    loop
        v_key := null;
        open next_rows;
        fetch next_rows into v_key;
        close next_rows;
        exit when v_key is null;
        internal_push_recheck(p_part_id, v_key, 0, 1);
        v_from := utl_raw.concat(v_key, hextoraw('00'));
    end loop;
end internal_hint_groups;
