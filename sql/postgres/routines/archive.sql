create or replace function rowq.archive(p_queue_name text, p_batch_size integer default 1000)
returns table (archived integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
-- routine   archive
-- version   1
-- purpose   Move finished messages to the archive, if the queue has archive_days.
-- promise   P19 P45
-- locks     finished rows, skipping locked ones; message rows; new archive rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
begin
    perform rowq.internal_check_batch_size(p_batch_size);
    v_queue := rowq.internal_require_queue(p_queue_name);

    return query select rowq.internal_archive(v_queue.queue_id, p_batch_size);
end;
$$;
