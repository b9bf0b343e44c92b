function internal_promote(p_part_id in number, p_limit in number)
return number
is
-- routine   internal_promote
-- purpose   Move up to p_limit due messages to the tails of their lanes, or into their groups, earliest first.
-- promise   P11 P21
-- locks     delayed rows, passing over locked ones; new ready rows; as internal_promote_grouped
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_part_id, -2 /* delayed */));
    v_probe    rowq_delayed.message_id%type;
    v_locked   t_locked_rows;
    v_messages t_messages;
    v_joined   number;
    cursor due is
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.message_id
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.part_id, d.due_at, d.message_id;
    cursor due_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.part_id, d.due_at, d.message_id
        for update skip locked;
begin
    -- Look without a lock first, so that a call that finds nothing begins no transaction.
    open due;
    fetch due into v_probe;
    close due;
    if v_probe is null then
        return 0;
    end if;

    open due_rows;
    fetch due_rows bulk collect into v_locked limit p_limit;
    close due_rows;
    internal_delete_delayed(v_locked, v_messages);
    internal_promote_grouped(p_part_id, v_messages, v_joined);
    internal_push_ready(p_part_id, v_messages);
    return v_messages.count + v_joined;
end internal_promote;
