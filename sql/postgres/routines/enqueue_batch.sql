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
        select s.position::integer, s.message_id, 'enqueued'
        from unnest(v_stored.o_message_ids) with ordinality s (message_id, position);
        return;
    end if;

    return query
    select s.position, s.message_id, s.outcome
    from rowq.internal_store_keyed(v_queue_id, p_queue_name, p_messages, v_max_length, v_now) s;
end;
$$;
