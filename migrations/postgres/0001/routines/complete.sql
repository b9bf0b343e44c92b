create or replace function rowq.complete(
    p_queue_name  text,
    p_claim_id    bigint,
    p_message_ids bigint[] default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   complete
-- version   1
-- purpose   Finish messages: they are gone, or in the archive, and never delivered again.
-- promise   P04 P08
-- locks     the claim row first; then message and dedup rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_part_id      integer;
    v_archive_days integer;
    v_taken        record;
begin
    select q.part_id, q.archive_days into v_part_id, v_archive_days
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    v_taken := rowq.internal_take(v_part_id, p_claim_id, p_message_ids);

    if v_taken.o_message_ids <> '{}' then
        perform rowq.internal_finish(
            v_part_id, v_archive_days, v_taken.o_message_ids, v_taken.o_lanes,
            v_taken.o_attempts, 'completed'
        );
    end if;

    return query
    select u.message_id,
           case when u.message_id = any (v_taken.o_message_ids) then 'completed' else 'stale' end
    from unnest(coalesce(p_message_ids, v_taken.o_message_ids)) u (message_id);
end;
$$;
