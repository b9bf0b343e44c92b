procedure purge_archive(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   purge_archive
-- version   1
-- purpose   Delete archived messages past archive_days and attempts past history_days.
-- promise   P19 P37
-- locks     archive and history rows, skipping locked ones; for a drop a partition, tried
-- commits   never; the caller owns the transaction. Partitions are dropped in an autonomous one
-- errors    RQ701 RQ711
-- differs   partitions only after partition_archive.sql
    v_queue         t_queue;
    v_purged        pls_integer;
    v_dropped       pls_integer;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    -- Drop partitions before this transaction locks the archive.
    v_dropped := internal_drop_days(true);
    v_purged := internal_purge_archive(
        v_queue.queue_id,
        sys_extract_utc(systimestamp) - numtodsinterval(v_queue.archive_days, 'day'),
        p_batch_size
    );
    v_purged := v_purged + internal_purge_history(v_queue, p_batch_size);

    open p_rows for
        select v_purged as purged, v_dropped as partitions_dropped
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end purge_archive;
