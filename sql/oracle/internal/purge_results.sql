function internal_purge_results(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_purge_results
-- purpose   Delete up to p_limit results of messages that ended too long ago; returns how many there were.
-- promise   P13 P32
-- locks     result rows, passing over locked ones
    v_before  constant timestamp(6) :=
        sys_extract_utc(systimestamp) - numtodsinterval(p_queue.result_seconds, 'second');
    v_since   constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.part_id, -7 /* result */));
    v_probe   rowq_result.finished_at%type;
    v_row_ids t_row_ids;
    v_purged  number := 0;
    cursor due is
        select /*+ index_rs_asc(r rowq_result_finished_ix) */ r.finished_at
        from rowq_result r
        where r.part_id = p_queue.part_id
          and r.finished_at >= v_since
          and r.finished_at < v_before
        order by r.part_id, r.finished_at;
    -- The order of the index is enough: no statement sorts, and a row is locked when it is fetched.
    cursor due_rows is
        select /*+ index_rs_asc(r rowq_result_finished_ix) no_batch_table_access_by_rowid(r) */
               r.rowid
        from rowq_result r
        where r.part_id = p_queue.part_id
          and r.finished_at >= v_since
          and r.finished_at < v_before
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
    fetch due_rows bulk collect into v_row_ids limit p_limit;
    close due_rows;
    -- Ask again for what the cursor asked for, because a row may be another one by now, or a newer
    -- end of its message, where somebody has changed it since the cursor was opened.
    forall i in 1 .. v_row_ids.count
        delete from rowq_result r
        where r.rowid = v_row_ids(i)
          and r.part_id = p_queue.part_id
          and r.finished_at < v_before;
    for i in 1 .. v_row_ids.count loop
        v_purged := v_purged + sql%bulk_rowcount(i);
    end loop;
    return v_purged;
end internal_purge_results;
