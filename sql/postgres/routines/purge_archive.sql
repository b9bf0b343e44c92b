create or replace function rowq.purge_archive(p_queue_name text, p_batch_size integer default 1000)
returns table (purged integer, partitions_dropped integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   purge_archive
-- version   1
-- purpose   Delete archived messages past archive_days and attempts past history_days.
-- promise   P19 P37
-- locks     archive and history rows; for a drop the archive, tried, until the caller's transaction
--           ends
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue  rowq.queue;
    v_purged integer;
begin
    perform rowq.internal_check_batch_size(p_batch_size);
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_purged := rowq.internal_purge_history(v_queue.queue_id, v_queue.history_days, p_batch_size);

    return query
    select v_purged + a.o_purged, a.o_partitions_dropped
    from rowq.internal_purge_archive(
        v_queue.queue_id, v_queue.archive_days, p_batch_size, false
    ) a;
end;
$$;
