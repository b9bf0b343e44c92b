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
    forall i in 1 .. v_row_ids.count
        delete from rowq_archive a
        where a.rowid = v_row_ids(i);
    return v_row_ids.count;
end internal_purge_archive;
