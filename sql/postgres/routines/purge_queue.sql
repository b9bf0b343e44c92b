create or replace function rowq.purge_queue(
    p_queue_name   text,
    p_include_dead boolean default false,
    p_max_messages integer default null
)
returns table (removed bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   purge_queue
-- version   1
-- purpose   Delete ready, delayed and blocked messages; leased ones stay with their workers.
-- promise   P15
-- locks     blocked, group_waiting, ready, delayed and dead rows, skipping locked ones; then as
--           complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    c_step    constant integer := 10000;
    v_queue   rowq.queue;
    v_removed bigint := 0;
    v_wanted  integer;
    v_lane    smallint := -1;
    v_seq     bigint := 0;
    v_ids     bigint[];
    v_seqs    bigint[];
    v_lanes   smallint[];
    v_key     text := '';
    v_id      bigint := 0;
    v_keys    text[];
    v_outside bigint[];
begin
    if p_max_messages not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 10000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- Purge blocked messages first: nothing may resume them or pass a slot to them.
    loop
        v_wanted := least(c_step, p_max_messages - v_removed);
        exit when v_wanted <= 0;

        select array_agg(h.message_id) into v_ids
        from (
            select b.message_id
            from rowq.blocked b
            where b.queue_id = v_queue.queue_id
              and b.message_id > v_id
            order by b.queue_id, b.message_id
            limit v_wanted
            for update skip locked
        ) h;
        exit when v_ids is null;

        delete from rowq.blocked b
        where b.queue_id = v_queue.queue_id
          and b.message_id between v_ids[1] and v_ids[cardinality(v_ids)]
          and b.message_id = any (v_ids);
        v_id := v_ids[cardinality(v_ids)];
        perform rowq.internal_finish(v_queue.queue_id, 0, v_ids, null, null, 'cancelled', v_ids);
        v_removed := v_removed + cardinality(v_ids);
    end loop;
    v_id := 0;

    loop
        v_wanted := least(c_step, p_max_messages - v_removed);
        exit when v_wanted <= 0;

        select array_agg(h.message_id), array_agg(h.group_key) into v_ids, v_keys
        from (
            select x.message_id, x.group_key
            from rowq.group_waiting x
            where x.queue_id = v_queue.queue_id
              and (x.group_key, x.message_id) > (v_key, v_id)
            order by x.queue_id, x.group_key, x.message_id
            limit v_wanted
            for update skip locked
        ) h;
        exit when v_ids is null;

        delete from rowq.group_waiting x
        where x.queue_id = v_queue.queue_id
          and (x.group_key, x.message_id) > (v_key, v_id)
          and (x.group_key, x.message_id)
              <= (v_keys[cardinality(v_keys)], v_ids[cardinality(v_ids)])
          and x.message_id = any (v_ids);
        v_key := v_keys[cardinality(v_keys)];
        v_id := v_ids[cardinality(v_ids)];
        perform rowq.internal_finish(v_queue.queue_id, 0, v_ids, null, null, 'cancelled', v_ids);
        v_removed := v_removed + cardinality(v_ids);
    end loop;

    loop
        v_wanted := least(c_step, p_max_messages - v_removed);
        exit when v_wanted <= 0;

        -- Continue after the last row: the index still holds the deleted rows before it.
        select array_agg(h.message_id), array_agg(h.lane), array_agg(h.seq)
        into v_ids, v_lanes, v_seqs
        from (
            select r.message_id, r.lane, r.seq
            from rowq.ready r
            where r.queue_id = v_queue.queue_id
              and (r.lane, r.seq) > (v_lane, v_seq)
            order by r.queue_id, r.lane, r.seq
            limit v_wanted
            for update skip locked
        ) h;
        exit when v_ids is null;

        delete from rowq.ready r
        where r.queue_id = v_queue.queue_id
          and (r.lane, r.seq) > (v_lane, v_seq)
          and (r.lane, r.seq) <= (v_lanes[cardinality(v_lanes)], v_seqs[cardinality(v_seqs)])
          and r.seq = any (v_seqs);
        v_lane := v_lanes[cardinality(v_lanes)];
        v_seq := v_seqs[cardinality(v_seqs)];
        perform rowq.internal_finish(v_queue.queue_id, 0, v_ids, null, null, 'cancelled');
        v_removed := v_removed + cardinality(v_ids);
    end loop;

    select array_agg(h.message_id), array_agg(h.message_id) filter (where h.group_key is not null)
    into v_ids, v_outside
    from (
        select d.message_id, d.group_key
        from rowq.delayed d
        where d.queue_id = v_queue.queue_id
        order by d.queue_id, d.message_id
        limit p_max_messages - v_removed
        for update skip locked
    ) h;
    delete from rowq.delayed d
    where d.queue_id = v_queue.queue_id
      and d.message_id between v_ids[1] and v_ids[cardinality(v_ids)]
      and d.message_id = any (v_ids);
    perform rowq.internal_finish(v_queue.queue_id, 0, v_ids, null, null, 'cancelled', v_outside);
    v_removed := v_removed + coalesce(cardinality(v_ids), 0);

    if p_include_dead then
        select array_agg(h.message_id), array_agg(h.message_id) filter (where h.is_outside)
        into v_ids, v_outside
        from (
            select d.message_id, d.holds_slot is null as is_outside
            from rowq.dead d
            where d.queue_id = v_queue.queue_id
            order by d.queue_id, d.message_id
            limit p_max_messages - v_removed
            for update skip locked
        ) h;
        delete from rowq.dead d
        where d.queue_id = v_queue.queue_id
          and d.message_id between v_ids[1] and v_ids[cardinality(v_ids)]
          and d.message_id = any (v_ids);
        perform rowq.internal_finish(
            v_queue.queue_id, 0, v_ids, null, null, 'cancelled', v_outside
        );
        v_removed := v_removed + coalesce(cardinality(v_ids), 0);
    end if;

    return query select v_removed;
end;
$$;
