create or replace function rowq.complete_and_dequeue(
    p_queue_name    text,
    p_claim_id      bigint,
    p_message_ids   bigint[] default null,
    p_results       jsonb default null,
    p_batch_size    integer default 1,
    p_worker_name   text default null,
    p_lease_seconds integer default null
)
returns table (
    outcome      text,
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
-- routine   complete_and_dequeue
-- version   1
-- purpose   Complete messages of a claim and lease the next ones, in one call and one commit.
-- promise   P02 P03 P04 P05 P06 P07 P08 P13 P18 P21 P22 P23 P24 P26 P28 P29 P32 P37 P49
-- locks     as complete, then as dequeue_fast
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ713
-- differs   nothing
#variable_conflict use_column
declare
    v_queue_id       integer;
    v_lease_seconds  integer;
    v_archive_days   integer;
    v_history_days   integer;
    v_result_seconds double precision;
    v_is_paused      boolean;
    v_has_deferred   boolean;
    v_max_leased     integer;
    v_rate_limit     integer;
    v_rate_seconds   double precision;
    v_read_at        timestamp with time zone;
    v_is_limited     boolean := false;
    v_is_stale       boolean := false;
    v_message_ids    bigint[];
    v_lanes          smallint[];
    v_attempts       smallint[];
    v_dedup_key      text;
    v_group_key      text;
    v_is_awaited     boolean;
    v_last_id        bigint;
    v_count          integer;
    v_rest           bigint[];
    v_admitted       record;
    v_claim_id       bigint;
    v_lease_until    timestamp with time zone;
    v_lane           smallint := -1;
    v_floor          bigint;
    v_seq            bigint;
    v_message_id     bigint;
    v_attempt        smallint;
    v_error          text;
    v_is_second      boolean := false;
    v_taken          record;
begin
    -- check: generated from dequeue_fast.sql by make generate
    if p_batch_size is null
       or p_batch_size not between 1 and 1000
       or p_lease_seconds not between 1 and 86400
       or char_length(p_worker_name) > 200 then
        raise exception 'RQ711 invalid_argument: %',
            case
                when p_batch_size between 1 and 1000 and p_lease_seconds not between 1 and 86400
                    then 'lease_seconds must be between 1 and 86400, got ' || p_lease_seconds
                when p_batch_size between 1 and 1000
                    then 'worker_name must be at most 200 characters'
                else 'batch_size must be between 1 and 1000, got '
                    || coalesce(p_batch_size::text, 'null')
            end
            using errcode = 'RQ711';
    end if;
    -- end of check

    select q.queue_id, q.archive_days, q.result_seconds, q.history_days,
           q.lease_seconds, q.paused_at is not null, q.has_deferred,
           q.max_leased, q.rate_limit, q.rate_seconds, clock_timestamp()
    into v_queue_id, v_archive_days, v_result_seconds, v_history_days,
         v_lease_seconds, v_is_paused, v_has_deferred,
         v_max_leased, v_rate_limit, v_rate_seconds, v_read_at
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    -- Usually the whole claim is completed, and the queue keeps no history and no results.
    if v_history_days + v_result_seconds = 0 and p_results is null then
        delete from rowq.claim c
        where c.queue_id = v_queue_id
          and c.claim_id = p_claim_id
          and (p_message_ids is null or c.message_ids = p_message_ids)
        returning c.message_ids, c.lanes, c.attempts into v_message_ids, v_lanes, v_attempts;
    end if;

    -- deletion: generated from complete.sql by make generate
    -- Delete one message without an archive here: internal_finish would cost more statements. A row
    -- that was never locked has xmax 0, and deleting it does not wait; internal_end_linked takes
    -- any other row.
    if v_archive_days = 0 and cardinality(v_message_ids) = 1 then
        delete from rowq.message m
        where m.queue_id = v_queue_id
          and m.message_id = v_message_ids[1]
          and m.xmax = 0
        returning m.dedup_key, m.group_key, m.has_successors
        into v_dedup_key, v_group_key, v_is_awaited;
        if not found then
            perform rowq.internal_end_linked(v_queue_id, v_message_ids, false, true);
        elsif v_dedup_key is not null or v_group_key is not null or v_is_awaited then
            perform rowq.internal_release_links(
                v_queue_id,
                array[array[
                    v_dedup_key, v_group_key, case when v_is_awaited then v_message_ids[1]::text end
                ]],
                v_message_ids, true
            );
        end if;
    elsif v_message_ids <> '{}' then
        -- Delete a batch here as well, except messages with links, which internal_finish ends.
        v_rest := v_message_ids;
        v_last_id := v_message_ids[cardinality(v_message_ids)];
        if v_archive_days = 0 and v_last_id - v_message_ids[1] between 0 and 10000 then
            delete from rowq.message m
            where m.queue_id = v_queue_id
              and m.message_id between v_message_ids[1] and v_last_id
              and m.message_id = any (v_message_ids)
              and m.xmax = 0
              and m.dedup_key is null
              and m.group_key is null
              and m.has_successors is null;
            get diagnostics v_count = row_count;
            if v_count = cardinality(v_message_ids) then
                v_rest := '{}';
            else
                v_rest := array(
                    select m.message_id
                    from rowq.message m
                    where m.queue_id = v_queue_id
                      and m.message_id between v_message_ids[1] and v_last_id
                      and m.message_id = any (v_message_ids)
                );
                -- The bounds miss messages of a claim that is not in the order of ids: [3, 9, 4].
                if v_count + cardinality(v_rest) < cardinality(v_message_ids) then
                    v_rest := v_message_ids;
                end if;
            end if;
        end if;
        if v_rest <> '{}' then
            perform rowq.internal_finish(
                v_queue_id, v_archive_days, v_rest, v_lanes, v_attempts, 'completed'
            );
        end if;
    end if;
    -- end of deletion

    if v_message_ids is null then
        -- complete refuses a claim that is gone, but this routine still dequeues. Lock the claim
        -- row as complete does, before any other row.
        if p_message_ids is null and p_claim_id is not null then
            perform from rowq.claim c
            where c.queue_id = v_queue_id
              and c.claim_id = p_claim_id
            for update;
            v_is_stale := not found;
        end if;
        if v_is_stale then
            if p_results is not null then
                perform rowq.internal_check_results(p_results, 1, v_result_seconds);
            end if;
            outcome := 'stale';
            claim_id := p_claim_id;
            return next;
        else
            return query
            select 'stale', p_claim_id, c.message_id, null::integer, null, null::jsonb, null,
                   null::bytea, null::timestamp with time zone, null::timestamp with time zone,
                   null
            from rowq.complete(p_queue_name, p_claim_id, p_message_ids, p_results) c
            where c.outcome = 'stale';
        end if;
    end if;

    -- Settings may have changed while the completion waited for the old claim. Usually it takes
    -- less than 1 ms, and then this costs no statement.
    if clock_timestamp() - v_read_at > interval '1 millisecond' then
        select q.lease_seconds, q.paused_at is not null, q.has_deferred,
               q.max_leased, q.rate_limit, q.rate_seconds
        into v_lease_seconds, v_is_paused, v_has_deferred,
             v_max_leased, v_rate_limit, v_rate_seconds
        from rowq.queue q
        where q.queue_id = v_queue_id;
        if not found then
            return;
        end if;
    end if;

    -- lease: generated from dequeue_fast.sql by make generate
    if v_is_paused then
        return;
    end if;
    if v_max_leased + v_rate_limit > 0 then
        v_is_limited := true;
        v_admitted := rowq.internal_admit(
            v_queue_id, p_batch_size, v_max_leased, v_rate_limit, v_rate_seconds
        );
        p_batch_size := v_admitted.o_capacity;
        v_rate_limit := v_admitted.o_rate_limit;
        if p_batch_size = 0 then
            return;
        end if;
    end if;

    -- Fast path: lease one message from the best lane. It is inlined because a helper and the
    -- arrays of a batch would add 10 % to the call.
    while p_batch_size = 1 and not v_is_limited loop
        -- One lookup returns the next lane in use and its newest floor.
        select f.lane, f.start_seq into v_lane, v_floor
        from rowq.floor f
        where f.queue_id = v_queue_id
          and f.lane > v_lane
        order by f.queue_id, f.lane, f.generation
        limit 1;
        exit when not found;

        select r.seq, r.message_id, (r.attempt + 1)::smallint, r.last_error
        into v_seq, v_message_id, v_attempt, v_error
        from rowq.ready r
        where r.queue_id = v_queue_id
          and r.lane = v_lane
          and r.seq >= v_floor
        order by r.queue_id, r.lane, r.seq
        limit 1
        for update skip locked;
        continue when not found;

        delete from rowq.ready r
        where r.queue_id = v_queue_id
          and r.lane = v_lane
          and r.seq = v_seq;

        -- Moving the floor costs about as much as the rest of the call, scanning a few dead rows
        -- much less. So move it in 1 of 10 calls if it is more than 8 numbers behind, and always if
        -- more than 1000.
        if (v_seq - v_floor > 8 and random() < 0.1) or v_seq - v_floor > 1000 then
            perform rowq.internal_move_floor(v_queue_id, v_lane, true, p_cap => v_seq + 1);
        end if;

        insert into rowq.claim (
            queue_id, lease_until, message_ids, lanes, attempts, errors, worker_name
        )
        values (
            v_queue_id,
            clock_timestamp() + make_interval(secs => coalesce(p_lease_seconds, v_lease_seconds)),
            array[v_message_id], array[v_lane], array[v_attempt],
            case when v_error is not null then array[v_error] end,
            p_worker_name
        )
        returning claim_id, lease_until
        into v_claim_id, v_lease_until;
        return query
        select 'leased',
               v_claim_id, m.message_id, v_attempt::integer, m.message_type, m.headers,
               m.body, m.body_binary, m.enqueued_at, v_lease_until, v_error
        from rowq.message m
        where m.queue_id = v_queue_id
          and m.message_id = v_message_id;
        return;
    end loop;

    -- General path. The fast path comes here if it found nothing.
    loop
        if p_batch_size > 1 or v_is_second or v_is_limited then
            v_taken := rowq.internal_pop_ready(v_queue_id, p_batch_size);
            exit when v_taken.o_message_ids is not null;
        end if;

        -- Nothing is ready. Promote due messages and run deferred work now instead of waiting for
        -- maintain, then try again. If a sequence was set back, promoted messages can be below the
        -- floor; maintain finds those.
        if v_is_second
           or rowq.internal_promote(v_queue_id, p_batch_size) = 0
              and (not v_has_deferred or rowq.internal_run_deferred(v_queue_id, 10) = 0) then
            return;
        end if;
        v_is_second := true;
    end loop;

    insert into rowq.claim (
        queue_id, lease_until, message_ids, lanes, attempts, errors, worker_name
    )
    values (
        v_queue_id,
        clock_timestamp() + make_interval(secs => coalesce(p_lease_seconds, v_lease_seconds)),
        v_taken.o_message_ids, v_taken.o_lanes, v_taken.o_attempts,
        case when array_remove(v_taken.o_errors, null) <> '{}' then v_taken.o_errors end,
        p_worker_name
    )
    returning claim_id, lease_until
    into v_claim_id, v_lease_until;
    if v_rate_limit > 0 then
        perform rowq.internal_record_start(
            v_queue_id,
            v_claim_id,
            v_lease_until - make_interval(secs => coalesce(p_lease_seconds, v_lease_seconds)),
            cardinality(v_taken.o_message_ids)
        );
    end if;

    if cardinality(v_taken.o_message_ids) = 1 then
        return query
        select 'leased',
               v_claim_id, m.message_id, v_taken.o_attempts[1]::integer, m.message_type, m.headers,
               m.body, m.body_binary, m.enqueued_at, v_lease_until, v_taken.o_errors[1]
        from rowq.message m
        where m.queue_id = v_queue_id
          and m.message_id = v_taken.o_message_ids[1];
        return;
    end if;

    -- Fresh messages close together: a range scan returns them in their order. Before PostgreSQL 17
    -- "= any" is a filter, so the range must not hold many messages of other lanes.
    if v_taken.o_is_fresh
       and v_taken.o_greatest_id - v_taken.o_least_id < 8 * cardinality(v_taken.o_message_ids) then
        return query
        select 'leased',
               v_claim_id, m.message_id, 1, m.message_type, m.headers,
               m.body, m.body_binary, m.enqueued_at, v_lease_until, null::text
        from rowq.message m
        where m.queue_id = v_queue_id
          and m.message_id between v_taken.o_least_id and v_taken.o_greatest_id
          and m.message_id = any (v_taken.o_message_ids)
        order by m.queue_id, m.message_id;
        return;
    end if;

    -- Ids close together: one range scan instead of a lookup per message. The planner cannot run a
    -- full join as a nested loop, and offset 0 keeps it from choosing another join.
    if v_taken.o_greatest_id - v_taken.o_least_id < 2 * cardinality(v_taken.o_message_ids) then
        return query
        select 'leased',
               v_claim_id, j.message_id, j.attempt::integer, j.message_type, j.headers,
               j.body, j.body_binary, j.enqueued_at, v_lease_until, j.last_error
        from (
            select u.place, u.message_id, u.attempt, u.last_error,
                   m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at
            from unnest(v_taken.o_message_ids, v_taken.o_attempts, v_taken.o_errors)
                with ordinality u (message_id, attempt, last_error, place)
            full join (
                select x.message_id, x.message_type, x.headers, x.body, x.body_binary, x.enqueued_at
                from rowq.message x
                where x.queue_id = v_queue_id
                  and x.message_id between v_taken.o_least_id and v_taken.o_greatest_id
            ) m on m.message_id = u.message_id
            offset 0
        ) j
        where j.place is not null
        order by j.place;
        return;
    end if;

    -- Ids far apart: a lookup per message, which offset 0 keeps regardless of row estimates.
    return query
    select 'leased',
           v_claim_id, u.message_id, u.attempt::integer, m.message_type, m.headers,
           m.body, m.body_binary, m.enqueued_at, v_lease_until, u.last_error
    from unnest(v_taken.o_message_ids, v_taken.o_attempts, v_taken.o_errors)
        with ordinality u (message_id, attempt, last_error, place)
    cross join lateral (
        select x.message_type, x.headers, x.body, x.body_binary, x.enqueued_at
        from rowq.message x
        where x.queue_id = v_queue_id
          and x.message_id = u.message_id
        offset 0
    ) m
    order by u.place;
    -- end of lease
end;
$$;
