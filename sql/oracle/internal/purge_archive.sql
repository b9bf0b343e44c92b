function internal_purge_archive(
    p_part_id in number,
    p_before  in timestamp,
    p_limit   in number
)
return number
is
-- routine   internal_purge_archive
-- purpose   Delete up to p_limit of a queue's archived messages that finished before p_before.
-- promise   P19
-- locks     archive rows, passing over locked ones
    v_row_ids t_row_ids;
    v_purged  pls_integer := 0;
    cursor old_rows is
        select /*+ index_rs_asc(a rowq_archive_pk) no_batch_table_access_by_rowid(a) */ a.rowid
        from rowq_archive a
        where a.part_id = p_part_id
          and a.finished_at < p_before
        order by a.part_id, a.finished_at, a.message_id
        for update skip locked;
begin
    open old_rows;
    fetch old_rows bulk collect into v_row_ids limit p_limit;
    close old_rows;
    -- Ask again for what the cursor asked for, because a row may be another one by now where
    -- somebody else has purged it since the cursor was opened.
    forall i in 1 .. v_row_ids.count
        delete from rowq_archive a
        where a.rowid = v_row_ids(i)
          and a.part_id = p_part_id
          and a.finished_at < p_before;
    for i in 1 .. v_row_ids.count loop
        v_purged := v_purged + sql%bulk_rowcount(i);
    end loop;
    return v_purged;
end internal_purge_archive;
