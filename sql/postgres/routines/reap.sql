create or replace function rowq.reap(p_queue_name text, p_batch_size integer default 1000)
returns table (reaped integer, died integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   reap
-- version   1
-- purpose   Return unfinished messages of claims whose lease has expired.
-- promise   P03 P09 P34 P37 P45 P47
-- locks     expired claim rows, skipping locked ones; new ready, dead or history rows; for
--           cancelled messages as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
begin
    perform rowq.internal_check_batch_size(p_batch_size);
    v_queue := rowq.internal_require_queue(p_queue_name);

    return query
    select r.o_reaped, r.o_died
    from rowq.internal_reap(
        v_queue.queue_id, v_queue.max_attempts, v_queue.history_days, p_batch_size
    ) r;
end;
$$;
