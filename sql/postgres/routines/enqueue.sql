create or replace function rowq.enqueue(
    p_queue_name          text,
    p_body                text default null,
    p_body_binary         bytea default null,
    p_message_type        text default null,
    p_headers             jsonb default null,
    p_priority            integer default 5,
    p_delay_seconds       double precision default null,
    p_run_at              timestamp with time zone default null,
    p_dedup_key           text default null,
    p_max_attempts        integer default null,
    p_group_key           text default null,
    p_predecessor_ids     bigint[] default null,
    p_on_predecessor_dead text default null,
    p_expire_seconds      double precision default null,
    p_producer_name       text default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   enqueue
-- version   1
-- purpose   Enqueue a message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     new rows; the rows of predecessors, without waiting; with a dedup key, waits for open
--           enqueues of it; with a group key, waits for sessions that open or close the group
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_error           text;
    v_lane            smallint;
    v_queue_id        integer;
    v_max_body_length integer;
    v_group_limit     integer;
    v_message_id      bigint;
    v_existing        bigint;
    v_now             timestamp with time zone;
    v_due_at          timestamp with time zone;
begin
    -- Fast path, for a message with only a text body and a priority.
    if p_priority between 0 and 9 and num_nonnulls(
        p_body_binary, p_message_type, p_headers, p_delay_seconds, p_run_at, p_dedup_key,
        p_max_attempts, p_group_key, p_predecessor_ids, p_on_predecessor_dead, p_expire_seconds,
        p_producer_name
    ) = 0 then
        -- Get the transaction id before the defaults of message get the number and the clock:
        -- internal_move_floor relies on this order. The general path refuses an unknown queue and a
        -- long body.
        select q.queue_id into v_queue_id
        from rowq.queue q
        where q.queue_name = p_queue_name
          and octet_length(p_body) <= q.max_body_length
          and current_setting('transaction_isolation') = 'read committed'
          and pg_current_xact_id() is not null;
        if found then
            insert into rowq.message (queue_id, body)
            values (v_queue_id, p_body)
            returning message_id into message_id;
            insert into rowq.ready (queue_id, lane, seq, message_id)
            select f.queue_id, f.lane, enqueue.message_id, enqueue.message_id
            from rowq.floor f
            where f.queue_id = v_queue_id
              and f.lane = p_priority * 2 + 1
            order by f.queue_id, f.lane, f.generation
            limit 1;
            if not found then
                -- The lane was never used, or the first insert waited for drop_queue.
                perform rowq.internal_require_queue_row(v_queue_id, p_queue_name);
                v_lane := p_priority * 2 + 1;
                perform rowq.internal_open_lanes(v_queue_id, array[v_lane]);
                insert into rowq.ready (queue_id, lane, seq, message_id)
                values (v_queue_id, v_lane, message_id, message_id);
            end if;
            if rowq.internal_is_listened(v_queue_id) then
                perform pg_notify(rowq.internal_channel(v_queue_id), p_queue_name);
            end if;
            outcome := 'enqueued';
            return next;
            return;
        end if;
    end if;

    v_error := rowq.internal_message_error(
        p_body, p_body_binary, p_message_type, p_headers, p_priority,
        p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key,
        p_predecessor_ids, p_on_predecessor_dead, p_expire_seconds, p_producer_name
    );
    if v_error is not null then
        raise exception 'RQ711 invalid_argument: %', v_error
            using errcode = 'RQ711';
    end if;
    v_lane := p_priority * 2 + 1;
    select q.queue_id, q.max_body_length, q.group_limit
    into v_queue_id, v_max_body_length, v_group_limit
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    -- Compare bytes first: counting characters costs more, and a text never has more of them.
    if octet_length(p_body) > v_max_body_length
       or octet_length(p_body_binary) > v_max_body_length then
        v_error := rowq.internal_body_error(p_body, p_body_binary, v_max_body_length);
        if v_error is not null then
            raise exception 'RQ711 invalid_argument: %', v_error
                using errcode = 'RQ711';
        end if;
    end if;

    -- Get the transaction id before the number and the clock: internal_move_floor relies on this
    -- order.
    if pg_current_xact_id() is not null then
        v_message_id := nextval('rowq.message_seq');
        v_now := clock_timestamp();
    end if;
    if v_message_id <= any (p_predecessor_ids) then
        raise exception
            'RQ711 invalid_argument: predecessor_ids must name existing messages, got %', (
                select max(u.message_id)
                from unnest(p_predecessor_ids) u (message_id)
            )
            using errcode = 'RQ711';
    end if;

    while p_dedup_key is not null loop
        insert into rowq.dedup (queue_id, message_id, dedup_key)
        values (v_queue_id, v_message_id, p_dedup_key)
        on conflict (queue_id, dedup_key) do nothing;
        exit when found;

        -- Under repeatable read the snapshot may show a former owner and our own message.
        select max(d.message_id) into v_existing
        from rowq.dedup d
        where d.queue_id = v_queue_id
          and d.dedup_key = p_dedup_key;
        if v_existing is not null then
            return query select v_existing, 'duplicate';
            return;
        end if;
        -- The owner has finished in between, so the key is free again: retry.
    end loop;

    insert into rowq.message (
        queue_id, message_id, enqueued_at, max_attempts, message_type, dedup_key,
        headers, body, body_binary, group_key, producer_name, expires_at
    )
    select g.queue_id, v_message_id, v_now, p_max_attempts, p_message_type, p_dedup_key,
           p_headers, p_body, p_body_binary, p_group_key, p_producer_name,
           v_now + make_interval(secs => p_expire_seconds)
    from rowq.limit_lock g
    where g.queue_id = v_queue_id;
    if not found then
        -- The queue was dropped: the insert waited for drop_queue, and then found no limit_lock.
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        -- An old snapshot still shows a dropped queue, but locking its row fails with 40001.
        perform rowq.internal_require_queue_row(v_queue_id, p_queue_name);
    end if;

    v_due_at := coalesce(p_run_at, v_now + make_interval(secs => p_delay_seconds));
    if p_predecessor_ids is not null and rowq.internal_block(
        v_queue_id, v_message_id, v_lane, case when v_due_at > v_now then v_due_at end, p_group_key,
        p_predecessor_ids, p_on_predecessor_dead
    ) then
        null;
    elsif v_due_at > v_now then
        insert into rowq.delayed (queue_id, lane, message_id, due_at, group_key)
        values (v_queue_id, v_lane, v_message_id, v_due_at, p_group_key);
    elsif p_group_key is not null
          and not rowq.internal_take_group_slot(v_queue_id, p_group_key, v_group_limit) then
        insert into rowq.group_waiting (queue_id, lane, message_id, group_key)
        values (v_queue_id, v_lane, v_message_id, p_group_key);
    else
        insert into rowq.ready (queue_id, lane, seq, message_id)
        select f.queue_id, f.lane, v_message_id, v_message_id
        from rowq.floor f
        where f.queue_id = v_queue_id
          and f.lane = v_lane
        order by f.queue_id, f.lane, f.generation
        limit 1;
        if not found then
            perform rowq.internal_open_lanes(v_queue_id, array[v_lane]);
            insert into rowq.ready (queue_id, lane, seq, message_id)
            values (v_queue_id, v_lane, v_message_id, v_message_id);
        end if;
        if rowq.internal_is_listened(v_queue_id) then
            perform pg_notify(rowq.internal_channel(v_queue_id), p_queue_name);
        end if;
    end if;

    if p_expire_seconds is not null then
        perform rowq.internal_open_lanes(v_queue_id, '{-6}'::smallint[] /* expiry */);
        insert into rowq.expiry (queue_id, lane, expires_at, message_id, seq)
        values (
            v_queue_id, v_lane, v_now + make_interval(secs => least(p_expire_seconds, 86400)),
            v_message_id, v_message_id
        );
    end if;

    message_id := v_message_id;
    outcome := 'enqueued';
    return next;
end;
$$;
