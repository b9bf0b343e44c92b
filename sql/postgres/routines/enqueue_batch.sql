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
-- purpose   Enqueue many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P36
-- locks     as enqueue; dedup and group keys in key order
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue_id   integer;
    v_max_length integer;
    v_now        timestamp with time zone;
    v_ids        bigint[];
    v_bodies     text[];
    v_is_plain   boolean;
    v_is_found   boolean;
    v_stored     record;
begin
    select q.queue_id, q.max_body_length into v_queue_id, v_max_length
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    -- Get the transaction id before the numbers and the clock: internal_move_floor relies on this
    -- order.
    v_now := case when pg_current_xact_id() is not null then clock_timestamp() end;

    -- Fast path: every message is a body, a string, and nothing else. As jsonb, an object with only
    -- this key is 17 or 20 bytes longer than the string, by its header; any other key adds at least
    -- 8. A number may be shorter than its text: 1e34 has 35 digits. Most other batches show by
    -- their first message.
    if jsonb_typeof(p_messages) = 'array'
       and jsonb_array_length(p_messages) between 1 and 10000
       and pg_column_size(p_messages -> 0) - octet_length(p_messages -> 0 ->> 'body') in (17, 20)
    then
        -- Copy the value: one from a table may be compressed, and each access would decompress it.
        select array_agg(e.body),
               count(*) = count(*) filter (
                   where e.size <= v_max_length
                     and e.size - octet_length(e.body) in (17, 20)
                     and e.is_string
               )
        into v_bodies, v_is_plain
        from (
            select m.message ->> 'body' as body, pg_column_size(m.message) as size,
                   jsonb_typeof(m.message -> 'body') = 'string' as is_string
            from jsonb_array_elements(p_messages #> '{}') m (message)
            offset 0
        ) e;
    end if;
    if v_is_plain then
        -- Only a plain batch takes its ids here, so that the others leave no gap in the numbers.
        v_ids := array(
            select nextval('rowq.message_seq')
            from generate_series(1, cardinality(v_bodies))
        );
        -- In a select list unnest returns each row directly, in from it first stores all of them.
        insert into rowq.message (queue_id, message_id, enqueued_at, body)
        select v_queue_id, n.message_id, v_now, n.body
        from (select unnest(v_ids) as message_id, unnest(v_bodies) as body) n;

        insert into rowq.ready (queue_id, lane, seq, message_id)
        select v_queue_id, f.lane, n.message_id, n.message_id
        from (
            select x.lane
            from rowq.floor x
            where x.queue_id = v_queue_id
              and x.lane = 11 /* priority 5 */
            order by x.queue_id, x.lane, x.generation
            limit 1
        ) f
        cross join (select unnest(v_ids) as message_id) n;
        v_is_found := found;
        if not v_is_found or current_setting('transaction_isolation') <> 'read committed' then
            perform rowq.internal_require_queue_row(v_queue_id, p_queue_name);
        end if;
        if not v_is_found then
            perform rowq.internal_open_lanes(v_queue_id, '{11}'::smallint[]);
            insert into rowq.ready (queue_id, lane, seq, message_id)
            select v_queue_id, 11, n.message_id, n.message_id
            from unnest(v_ids) n (message_id);
        end if;
        if rowq.internal_is_listened(v_queue_id) then
            perform pg_notify(rowq.internal_channel(v_queue_id), p_queue_name);
        end if;
        return query
        select generate_series(1, cardinality(v_ids)), unnest(v_ids), 'enqueued';
        return;
    end if;

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
        select s.position::integer, s.message_id, 'enqueued'
        from unnest(v_stored.o_message_ids) with ordinality s (message_id, position);
        return;
    end if;

    return query
    select s.position, s.message_id, s.outcome
    from rowq.internal_store_keyed(v_queue_id, p_queue_name, p_messages, v_max_length, v_now) s;
end;
$$;
