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
-- purpose   Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.
-- promise   P12 P22 P26
-- locks     dead rows, passing over locked ones; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue   rowq.queue;
    v_ids     bigint[];
    v_outside bigint[];
begin
    if not rowq.internal_is_id_list(p_message_ids) then
        raise exception
            'RQ711 invalid_argument: message_ids must be a flat list of at most 10000 ids, no null'
            using errcode = 'RQ711';
    end if;
    if p_max_messages is null or p_max_messages not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 10000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    if p_message_ids is not null and num_nonnulls(p_message_type, p_died_before) > 0 then
        raise exception 'RQ711 invalid_argument: '
            'message_type and died_before go together with no message_ids'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    select array_agg(h.message_id), array_agg(h.message_id) filter (where h.is_outside)
    into v_ids, v_outside
    from (
        select d.message_id, d.holds_group is null as is_outside
        from rowq.dead d
        where d.part_id = v_queue.part_id
          and (p_message_ids is null or d.message_id = any (p_message_ids))
          and (p_died_before is null or d.died_at < p_died_before)
          and (p_message_type is null or p_message_type = (
              -- A value from a query is looked up by key for each dead message, whatever the
              -- planner thinks of the sizes.
              select m.message_type
              from rowq.message m
              where m.part_id = d.part_id
                and m.message_id = d.message_id
          ))
        order by d.part_id, d.message_id
        limit case when p_message_ids is null then p_max_messages else 10000 end
        for update skip locked
    ) h;

    delete from rowq.dead d
    where d.part_id = v_queue.part_id
      and d.message_id = any (v_ids);
    perform rowq.internal_finish(v_queue.part_id, 0, v_ids, null, null, 'cancelled', v_outside);

    return query select coalesce(cardinality(v_ids), 0)::bigint;
end;
$$;
