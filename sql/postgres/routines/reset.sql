create or replace function rowq.reset(
    p_queue_name   text,
    p_message_ids  bigint[] default null,
    p_max_messages integer default 1000,
    p_message_type text default null,
    p_died_before  timestamp with time zone default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   reset
-- version   1
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts.
-- promise   P10 P12 P32
-- locks     dead rows, skipping locked ones; dedup rows; result rows; new ready rows;
--           groups as enqueue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_dead       record;
    v_reset      record;
    v_group_keys text[];
    v_taken      bigint[];
    v_waiting    bigint[];
begin
    v_dead := rowq.internal_lock_dead(
        p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before
    );

    -- A dead message whose dedup key another message owns stays dead.
    insert into rowq.dedup (queue_id, message_id, dedup_key)
    select m.queue_id, m.message_id, m.dedup_key
    from rowq.message m
    where m.queue_id = v_dead.o_queue_id
      and m.message_id = any (v_dead.o_message_ids)
      and m.dedup_key is not null
    order by m.dedup_key, m.message_id
    on conflict (queue_id, dedup_key) do nothing;

    select coalesce(array_agg(m.message_id), '{}') into v_taken
    from rowq.message m
    where m.queue_id = v_dead.o_queue_id
      and m.message_id = any (v_dead.o_message_ids)
      and m.dedup_key is not null
      and not exists (
          select 1
          from rowq.dedup d
          where d.queue_id = m.queue_id
            and d.dedup_key = m.dedup_key
            and d.message_id = m.message_id
      );

    with from_dead as (
        delete from rowq.dead d
        where d.queue_id = v_dead.o_queue_id
          and d.message_id = any (v_dead.o_message_ids)
          and d.message_id <> all (v_taken)
        returning d.message_id, d.lane, d.last_error, d.holds_slot
    )
    select coalesce(array_agg(f.message_id order by f.message_id), '{}') ids,
           array_agg((f.lane / 2 * 2 + 1)::smallint order by f.message_id) lanes,
           array_agg(f.last_error order by f.message_id) errors,
           array_agg(f.holds_slot order by f.message_id) holds
    into v_reset
    from from_dead f;

    -- A message that still holds its slot does not join its group.
    select array_agg(case when u.holds_slot then null else m.group_key end order by u.position)
    into v_group_keys
    from unnest(v_reset.ids, v_reset.holds) with ordinality u (message_id, holds_slot, position)
    left join lateral (
        select x.group_key
        from rowq.message x
        where x.queue_id = v_dead.o_queue_id
          and x.message_id = u.message_id
        offset 0
    ) m on true;

    -- A message that is reset has no result any more.
    delete from rowq.result r
    where r.queue_id = v_dead.o_queue_id
      and r.message_id = any (v_reset.ids);

    if array_remove(v_group_keys, null) <> '{}' then
        v_waiting := rowq.internal_join_groups(
            v_dead.o_queue_id, v_group_keys, v_reset.ids, v_reset.lanes, v_reset.errors
        );
        perform rowq.internal_record_expiry(v_dead.o_queue_id, v_waiting);
    end if;
    perform rowq.internal_push_ready(
        v_dead.o_queue_id, array_agg(u.lane order by u.position),
        array_agg(u.message_id order by u.position), array_agg(0::smallint),
        array_agg(u.last_error order by u.position)
    )
    from unnest(v_reset.ids, v_reset.lanes, v_reset.errors)
        with ordinality u (message_id, lane, last_error, position)
    where u.message_id = any (v_waiting) is not true
    having count(*) > 0;

    return query
    select u.message_id,
           case
               when u.message_id = any (v_reset.ids) then 'reset'
               when u.message_id = any (v_taken) then 'duplicate'
               else 'not_found'
           end
    from unnest(coalesce(p_message_ids, v_dead.o_message_ids)) u (message_id);
end;
$$;
