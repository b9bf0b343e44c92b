create or replace function rowq.enqueue_batch(p_queue_name text, p_messages jsonb)
returns table ("position" integer, message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   enqueue_batch
-- version   1
-- purpose   Hand over many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P36
-- locks     new rows; with dedup and group keys, waits as enqueue does, in the order of the keys;
--           rows of predecessors, tried only
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue_id     integer;
    v_max_length   integer;
    v_now          timestamp with time zone;
    v_stored       record;
    v_ids          bigint[];
    v_max_attempts integer[];
    v_types        text[];
    v_dedup_keys   text[];
    v_group_keys   text[];
    v_headers      jsonb[];
    v_bodies       text[];
    v_binaries     bytea[];
    v_expires_ats  timestamp with time zone[];
    v_lanes        smallint[];
    v_due_ats      timestamp with time zone[];
    v_kept_ids     bigint[];
    v_awaited      bigint[];
    v_links        rowq.blocked[];
    v_blocked      bigint[];
    v_waiting      bigint[];
begin
    select q.queue_id, q.max_body_length into v_queue_id, v_max_length
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    -- Get the transaction id before the numbers and the clock: internal_move_floor relies on this
    -- order.
    perform pg_current_xact_id();
    v_now := clock_timestamp();

    v_stored := rowq.internal_store_plain(v_queue_id, p_messages, v_max_length, v_now);
    if v_stored.o_message_ids is null
       and coalesce(
           not p_messages @? (
               '$[*] ? (exists(@.dedup_key) || exists(@.group_key) || exists(@.predecessor_ids)'
               '|| exists(@.predecessor_positions) || exists(@.on_predecessor_dead))'
           ),
           true
       )
    then
        v_stored := rowq.internal_store_unkeyed(v_queue_id, p_messages, v_max_length, v_now);
        if v_stored.o_message_ids is null then
            return;
        end if;
    end if;
    if v_stored.o_message_ids is not null then
        perform rowq.internal_require_queue_row(v_queue_id, p_queue_name);
        if v_stored.o_lanes is not null then
            perform rowq.internal_open_lanes(v_queue_id, v_stored.o_lanes);
            if rowq.internal_is_listened(v_queue_id) then
                perform pg_notify(rowq.internal_channel(v_queue_id), p_queue_name);
            end if;
        end if;
        return query
        select s.place::integer, s.message_id, 'enqueued'
        from unnest(v_stored.o_message_ids) with ordinality s (message_id, place);
        return;
    end if;

    -- An array for each column: the row type of a table would have another column once an upgrade
    -- adds one, which a call that is under way does not know.
    select array_agg(nextval('rowq.message_seq')), array_agg(p.max_attempts),
           array_agg(p.message_type), array_agg(p.dedup_key), array_agg(p.group_key),
           array_agg(p.headers), array_agg(p.body), array_agg(p.body_binary),
           array_agg(v_now + make_interval(secs => p.expire_seconds)),
           array_agg((p.priority * 2 + 1)::smallint),
           array_agg(coalesce(p.run_at, v_now + make_interval(secs => p.delay_seconds)))
    into v_ids, v_max_attempts, v_types, v_dedup_keys, v_group_keys, v_headers, v_bodies,
         v_binaries, v_expires_ats, v_lanes, v_due_ats
    from rowq.internal_parse_messages(p_messages, v_max_length) p;
    if v_ids is null then
        return;
    end if;

    v_kept_ids := rowq.internal_reserve_dedup_keys(v_queue_id, v_ids, v_dedup_keys);

    -- Messages of this batch that others of it wait for need no second write.
    select array_agg(distinct v_kept_ids[p.place]) into v_awaited
    from (
        select e.position::integer as place
        from jsonb_path_query(
            p_messages, '$[*].predecessor_positions[*] ? (@ >= 1 && @ <= 10000)'
        ) e ("position")
    ) p
    where v_kept_ids[p.place] = v_ids[p.place];

    insert into rowq.message (
        queue_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
        headers, body, body_binary, group_key, has_successors, expires_at
    )
    select v_queue_id, m.max_attempts, m.message_id, v_now, m.message_type, m.dedup_key,
           m.headers, m.body, m.body_binary, m.group_key,
           case when m.message_id = any (v_awaited) then true end, m.expires_at
    from unnest(
        v_ids, v_kept_ids, v_max_attempts, v_types, v_dedup_keys, v_group_keys, v_headers,
        v_bodies, v_binaries, v_expires_ats
    ) m (
        message_id, kept_id, max_attempts, message_type, dedup_key, group_key, headers, body,
        body_binary, expires_at
    )
    where m.message_id = m.kept_id;
    perform rowq.internal_require_queue_row(v_queue_id, p_queue_name);

    if array_remove(v_expires_ats, null) <> '{}' then
        perform rowq.internal_open_lanes(v_queue_id, '{-6}'::smallint[] /* expiry */);
        insert into rowq.expiry (queue_id, lane, expires_at, message_id, seq)
        select v_queue_id, m.lane, least(m.expires_at, v_now + interval '1 day'), m.message_id,
               m.message_id
        from unnest(v_ids, v_kept_ids, v_lanes, v_expires_ats) m (
            message_id, kept_id, lane, expires_at
        )
        where m.message_id = m.kept_id
          and m.expires_at is not null;
    end if;

    v_links := rowq.internal_parse_predecessors(
        v_queue_id, p_messages, v_ids, v_group_keys, v_kept_ids, v_lanes, v_due_ats, v_now
    );

    -- Enter groups before predecessors are held: whoever ends one of those waits for this
    -- transaction, which must wait for nobody from then on.
    perform rowq.internal_open_lanes(v_queue_id, array_agg(m.lane))
    from unnest(v_lanes, v_due_ats) m (lane, due_at)
    where m.due_at <= v_now or m.due_at is null;
    if v_links <> '{}' then
        -- The archive looks for messages that wait only where this lane is.
        perform rowq.internal_open_lanes(v_queue_id, '{-4}'::smallint[] /* deferred */);
    end if;
    select rowq.internal_join_groups(
               v_queue_id, array_agg(m.group_key), array_agg(m.message_id), array_agg(m.lane)
           )
    into v_waiting
    from unnest(v_ids, v_kept_ids, v_group_keys, v_lanes, v_due_ats) m (
        message_id, kept_id, group_key, lane, due_at
    )
    where m.message_id = m.kept_id
      and m.group_key is not null
      and (m.due_at <= v_now or m.due_at is null)
      and not exists (
          select
          from unnest(v_links) t
          where t.message_id = m.message_id
      )
    having count(*) > 0;

    v_blocked := rowq.internal_block_batch(v_queue_id, v_links, v_awaited);

    insert into rowq.delayed (queue_id, lane, message_id, due_at, group_key)
    select v_queue_id, m.lane, m.message_id, m.due_at, m.group_key
    from unnest(v_ids, v_kept_ids, v_group_keys, v_lanes, v_due_ats) m (
        message_id, kept_id, group_key, lane, due_at
    )
    where m.message_id = m.kept_id
      and m.due_at > v_now
      and m.message_id <> all (v_blocked);

    insert into rowq.ready (queue_id, lane, seq, message_id)
    select v_queue_id, m.lane, m.message_id, m.message_id
    from unnest(v_ids, v_kept_ids, v_lanes, v_due_ats) m (message_id, kept_id, lane, due_at)
    where m.message_id = m.kept_id
      and (m.due_at <= v_now or m.due_at is null)
      and m.message_id <> all (v_blocked)
      and m.message_id = any (v_waiting) is not true;
    if found and rowq.internal_is_listened(v_queue_id) then
        perform pg_notify(rowq.internal_channel(v_queue_id), p_queue_name);
    end if;

    return query
    select m.place::integer, m.kept_id,
           case when m.message_id = m.kept_id then 'enqueued' else 'duplicate' end
    from unnest(v_ids, v_kept_ids) with ordinality m (message_id, kept_id, place);
end;
$$;
