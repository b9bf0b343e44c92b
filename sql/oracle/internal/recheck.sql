function internal_recheck(p_part_id in number, p_limit in number)
return number
is
-- routine   internal_recheck
-- purpose   Look again at up to p_limit tokens and messages that were left; return for how many that was enough.
-- promise   P22 P24 P26 P27
-- locks     recheck rows, passing over locked ones; as internal_try_recheck
    type t_note is record (
        due_at         rowq_recheck.due_at%type,
        recheck_id     rowq_recheck.recheck_id%type,
        group_key      rowq_recheck.group_key%type,
        is_hint        rowq_recheck.is_hint%type,
        message_id     rowq_recheck.message_id%type,
        predecessor_id rowq_recheck.predecessor_id%type
    );
    type t_notes is table of t_note index by pls_integer;
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_part_id, -4 /* deferred */));
    v_probe     rowq_recheck.recheck_id%type;
    v_notes     t_notes;
    v_is_solved boolean;
    v_solved    pls_integer := 0;
    cursor due is
        select /*+ index_rs_asc(r rowq_recheck_pk) */ r.recheck_id
        from rowq_recheck r
        where r.part_id = p_part_id
          and r.due_at >= v_since
          and r.due_at <= v_now
        order by r.part_id, r.due_at, r.recheck_id;
    cursor due_rows is
        select /*+ index_rs_asc(r rowq_recheck_pk) no_batch_table_access_by_rowid(r) */
               r.due_at, r.recheck_id, r.group_key, r.is_hint, r.message_id, r.predecessor_id
        from rowq_recheck r
        where r.part_id = p_part_id
          and r.due_at >= v_since
          and r.due_at <= v_now
        order by r.part_id, r.due_at, r.recheck_id
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
    fetch due_rows bulk collect into v_notes limit p_limit;
    close due_rows;
    for i in 1 .. v_notes.count loop
        -- What takes long is left to the next call.
        exit when i > 1
             and internal_seconds_since(v_now, sys_extract_utc(systimestamp)) > 0.5;
        savepoint rowq_note_part;
        v_is_solved := internal_try_recheck(
            p_part_id, v_notes(i).group_key, v_notes(i).message_id, v_notes(i).predecessor_id,
            v_notes(i).is_hint
        );
        -- A row that is not solved stays as it is: a producer that is idle in its transaction must
        -- not make every look write.
        if v_is_solved then
            delete from rowq_recheck r
            where r.part_id = p_part_id
              and r.due_at = v_notes(i).due_at
              and r.recheck_id = v_notes(i).recheck_id;
            -- Another session may have solved it after the cursor was opened. Once is enough: a
            -- token must not be passed on twice.
            if sql%rowcount = 0 then
                rollback to savepoint rowq_note_part;
            else
                v_solved := v_solved + 1;
            end if;
        end if;
    end loop;
    return v_solved;
end internal_recheck;
