create or replace function rowq.promote(p_queue_name text, p_batch_size integer default 1000)
returns table (promoted integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   promote
-- version   1
-- purpose   Make delayed messages ready that are due.
-- promise   P11 P45
-- locks     delayed rows, skipping locked ones; new ready rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
begin
    perform rowq.internal_check_batch_size(p_batch_size);
    v_queue := rowq.internal_require_queue(p_queue_name);

    return query select rowq.internal_promote(v_queue.queue_id, p_batch_size);
end;
$$;
