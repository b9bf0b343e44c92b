procedure archive(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   archive
-- version   1
-- purpose   Move finished messages to the archive, if the queue has archive_days.
-- promise   P19 P45
-- locks     finished rows, skipping locked ones; message rows; new archive rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_archived      pls_integer;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    v_archived := internal_archive(v_queue.queue_id, p_batch_size);

    open p_rows for
        select v_archived as archived
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end archive;
