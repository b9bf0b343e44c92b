create or replace function rowq.dequeue_fast(
    p_queue_name    text,
    p_batch_size    integer default 1,
    p_worker_name   text default null,
    p_lease_seconds integer default null
)
returns table (
    claim_id     bigint,
    message_id   bigint,
    attempt      integer,
    message_type text,
    headers      jsonb,
    body         text,
    body_binary  bytea,
    enqueued_at  timestamp with time zone,
    lease_until  timestamp with time zone,
    last_error   text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   dequeue_fast
-- version   1
-- purpose   Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.
-- promise   P02 P03 P05 P06 P07 P13 P18
-- locks     ready rows, passing over locked ones; the new claim row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   the batch is held as arrays in the claim row
#variable_conflict use_column
declare
    v_part_id       integer;
    v_lease_seconds integer;
    v_is_paused     boolean;
    v_one           record;
    v_taken         record;
    v_claim_id      bigint;
    v_lease_until   timestamp with time zone;
begin
    if p_batch_size is null
       or p_batch_size not between 1 and 1000
       or p_lease_seconds not between 1 and 86400
       or char_length(p_worker_name) > 200 then
        raise exception 'RQ711 invalid_argument: %',
            case
                when p_batch_size between 1 and 1000 and p_lease_seconds not between 1 and 86400
                    then 'lease_seconds must be between 1 and 86400, got ' || p_lease_seconds
                when p_batch_size between 1 and 1000
                    then 'worker_name is longer than 200 characters'
                else 'batch_size must be between 1 and 1000, got '
                    || coalesce(p_batch_size::text, 'null')
            end
            using errcode = 'RQ711';
    end if;

    select q.part_id, q.lease_seconds, q.paused_at is not null
    into v_part_id, v_lease_seconds, v_is_paused
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    if v_is_paused then
        return;
    end if;

    -- One message, where each statement counts: the same as below without arrays.
    if p_batch_size = 1 then
        v_one := rowq.internal_pop_ready_one(v_part_id);
        if v_one.o_message_id is null and rowq.internal_promote(v_part_id, 1) > 0 then
            v_one := rowq.internal_pop_ready_one(v_part_id);
        end if;
        if v_one.o_message_id is null then
            return;
        end if;

        insert into rowq.claim (
            part_id, lease_until, message_ids, lanes, attempts, errors, worker_name
        )
        values (
            v_part_id,
            clock_timestamp() + make_interval(secs => coalesce(p_lease_seconds, v_lease_seconds)),
            array[v_one.o_message_id], array[v_one.o_lane], array[v_one.o_attempt],
            case when v_one.o_error is not null then array[v_one.o_error] end,
            p_worker_name
        )
        returning claim_id, lease_until
        into v_claim_id, v_lease_until;

        return query
        select v_claim_id, m.message_id, v_one.o_attempt::integer, m.message_type, m.headers,
               m.body, m.body_binary, m.enqueued_at, v_lease_until, v_one.o_error
        from rowq.message m
        where m.part_id = v_part_id
          and m.message_id = v_one.o_message_id;
        return;
    end if;

    v_taken := rowq.internal_pop_ready(v_part_id, p_batch_size);
    if v_taken.o_message_ids is null then
        -- Nothing ready: what has become due meanwhile need not wait for maintain.
        if rowq.internal_promote(v_part_id, p_batch_size) = 0 then
            return;
        end if;
        v_taken := rowq.internal_pop_ready(v_part_id, p_batch_size);
        if v_taken.o_message_ids is null then
            -- Promoted below the floor, by a sequence that was set back: maintain will find them.
            return;
        end if;
    end if;

    insert into rowq.claim (
        part_id, lease_until, message_ids, lanes, attempts, errors, worker_name
    )
    values (
        v_part_id,
        clock_timestamp() + make_interval(secs => coalesce(p_lease_seconds, v_lease_seconds)),
        v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts,
        case when array_remove(v_taken.o_errors, null) <> '{}' then v_taken.o_errors end,
        p_worker_name
    )
    returning claim_id, lease_until
    into v_claim_id, v_lease_until;

    if cardinality(v_taken.o_message_ids) = 1 then
        return query
        select v_claim_id, m.message_id, v_taken.o_attempts[1]::integer, m.message_type, m.headers,
               m.body, m.body_binary, m.enqueued_at, v_lease_until, v_taken.o_errors[1]
        from rowq.message m
        where m.part_id = v_part_id
          and m.message_id = v_taken.o_message_ids[1];
        return;
    end if;

    if v_taken.o_greatest_id - v_taken.o_least_id < 2 * cardinality(v_taken.o_message_ids) then
        -- Close together: one walk along the index, not a way down it for each message. A full
        -- join is the one that cannot be nested loops, and offset keeps it one.
        return query
        select v_claim_id, j.message_id, j.attempt::integer, j.message_type, j.headers,
               j.body, j.body_binary, j.enqueued_at, v_lease_until, j.last_error
        from (
            select u.place, u.message_id, u.attempt, u.last_error,
                   m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at
            from unnest(v_taken.o_message_ids, v_taken.o_attempts, v_taken.o_errors)
                with ordinality u (message_id, attempt, last_error, place)
            full join (
                select x.message_id, x.message_type, x.headers, x.body, x.body_binary, x.enqueued_at
                from rowq.message x
                where x.part_id = v_part_id
                  and x.message_id between v_taken.o_least_id and v_taken.o_greatest_id
            ) m on m.message_id = u.message_id
            offset 0
        ) j
        where j.place is not null
        order by j.place;
        return;
    end if;

    return query
    select v_claim_id, u.message_id, u.attempt::integer, m.message_type, m.headers,
           m.body, m.body_binary, m.enqueued_at, v_lease_until, u.last_error
    from unnest(v_taken.o_message_ids, v_taken.o_attempts, v_taken.o_errors)
        with ordinality u (message_id, attempt, last_error, place)
    cross join lateral (
        -- offset keeps this a lookup for each message, whatever the planner thinks of the sizes
        select x.message_type, x.headers, x.body, x.body_binary, x.enqueued_at
        from rowq.message x
        where x.part_id = v_part_id
          and x.message_id = u.message_id
        offset 0
    ) m
    order by u.place;
end;
$$;
