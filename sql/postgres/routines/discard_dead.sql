create or replace function rowq.discard_dead(
    p_queue_name   text,
    p_message_ids  bigint[] default null,
    p_max_messages integer default 1000,
    p_message_type text default null,
    p_died_before  timestamp with time zone default null
)
returns table (removed bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   discard_dead
-- version   1
-- purpose   Delete dead messages; they do not go to the archive.
-- promise   P12 P22 P26
-- locks     dead rows, skipping locked ones; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_dead record;
begin
    v_dead := rowq.internal_lock_dead(
        p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before
    );

    delete from rowq.dead d
    where d.queue_id = v_dead.o_queue_id
      and d.message_id = any (v_dead.o_message_ids);
    perform rowq.internal_finish(
        v_dead.o_queue_id, 0, v_dead.o_message_ids, null, null, 'cancelled', v_dead.o_without_slot
    );

    return query select coalesce(cardinality(v_dead.o_message_ids), 0)::bigint;
end;
$$;
