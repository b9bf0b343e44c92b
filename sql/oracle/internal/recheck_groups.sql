function internal_recheck_groups(p_part_id in number, p_limit in number)
return number
is
-- routine   internal_recheck_groups
-- purpose   For a dequeue that found nothing, look again at up to p_limit groups in recheck; return how many of them have one more ready message.
-- promise   P22 P24
-- locks     none where it returns 0; else a recheck row, passing over locked ones, and as
--           internal_pass_group and internal_widen_group
-- differs   elsewhere a dequeue looks at all of recheck. Here the row of a predecessor would stay
--           locked to the end of the transaction, and fail_now would wait for that
    type t_note is record (
        due_at     rowq_recheck.due_at%type,
        recheck_id rowq_recheck.recheck_id%type,
        group_key  rowq_recheck.group_key%type,
        is_hint    rowq_recheck.is_hint%type
    );
    type t_notes is table of t_note index by pls_integer;
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_part_id, -4 /* deferred */));
    v_notes     t_notes;
    v_due_at    rowq_recheck.due_at%type;
    v_id        rowq_recheck.recheck_id%type;
    v_locked_id rowq_recheck.recheck_id%type;
    v_group     t_group;
    v_first_id  rowq_grouped.message_id%type;
    v_is_solved boolean;
    v_is_ready  boolean;
    v_ready     pls_integer := 0;
    cursor due is
        select /*+ index_rs_asc(r rowq_recheck_pk) no_batch_table_access_by_rowid(r) */
               r.due_at, r.recheck_id, r.group_key, r.is_hint
        from rowq_recheck r
        where r.part_id = p_part_id
          and r.due_at >= v_since
          and r.due_at <= v_now
          and r.group_key is not null
          and exists (
              select /*+ no_unnest index(g rowq_grouped_pk) */ null
              from rowq_grouped g
              where g.part_id = r.part_id
                and g.group_key = r.group_key
          )
        order by r.part_id, r.due_at, r.recheck_id;
    cursor note_row is
        select r.recheck_id
        from rowq_recheck r
        where r.part_id = p_part_id
          and r.due_at = v_due_at
          and r.recheck_id = v_id
        for update skip locked;
begin
    open due;
    fetch due bulk collect into v_notes limit p_limit;
    close due;
    for i in 1 .. v_notes.count loop
        internal_read_group(p_part_id, v_notes(i).group_key, v_group);
        v_first_id := v_group.first_id;
        -- Undo what makes no message ready, so that a caller who got nothing, and does not end the
        -- transaction, locks nothing.
        savepoint rowq_note_part;
        v_is_ready := false;
        v_due_at := v_notes(i).due_at;
        v_id := v_notes(i).recheck_id;
        v_locked_id := null;
        open note_row;
        fetch note_row into v_locked_id;
        close note_row;
        if v_locked_id is not null then
            v_is_solved := internal_try_recheck(
                p_part_id, v_notes(i).group_key, null, null, v_notes(i).is_hint
            );
            if v_is_solved then
                delete from rowq_recheck r
                where r.part_id = p_part_id
                  and r.due_at = v_due_at
                  and r.recheck_id = v_id;
                v_is_ready := sql%rowcount = 1;
                -- If a message is ready now, it was the first one that waited.
                internal_read_group(p_part_id, v_notes(i).group_key, v_group);
                v_is_ready := v_is_ready and v_first_id <> coalesce(v_group.first_id, 0);
            end if;
        end if;
        if v_is_ready then
            v_ready := v_ready + 1;
        else
            rollback to savepoint rowq_note_part;
        end if;
    end loop;
    return v_ready;
end internal_recheck_groups;
