-- Results: how messages ended, and waiting for that.
--
-- If a queue has result_seconds, the call that ends a message adds a row to result in the same
-- transaction: completed with its result, dead with its last error, cancelled or expired. reset
-- deletes it. get_result reads it by key; wait_for_result polls it in short transactions of a few
-- reads by key. maintain purges in the order of finished_at, from a floor. Without result_seconds
-- complete runs no statement for results.
--
--   complete -> check_results
--   complete, finish, push_dead -> push_result
--   wait_for_result -> poll_result
--   maintain_queue -> purge_results
--
-- Writes result. Only reads floor, queue.

create or replace function rowq.internal_check_results(
    p_results        jsonb,
    p_count          integer,
    p_result_seconds double precision
)
returns void
language plpgsql
as $$
-- purpose   Refuse results that are invalid, are not one per message, or are not kept by the queue.
-- errors    RQ711
declare
    c_longest constant integer := 1048576;
    v_error text;
begin
    v_error := case
        when p_result_seconds = 0
            then 'the queue does not keep results: result_seconds is 0'
        else coalesce(
            rowq.internal_json_error('results', p_results, 'array', 'strict $[*].**{20}', null),
            case
                when jsonb_array_length(p_results) <> p_count
                    then format(
                        'results must have one value per message: got %s results for %s messages',
                        jsonb_array_length(p_results), p_count
                    )
            end,
            (
                select format('a result must be at most %s characters', c_longest)
                from jsonb_array_elements(p_results) e (result)
                where char_length(e.result::text) > c_longest
                limit 1
            )
        )
    end;
    if v_error is not null then
        raise exception 'RQ711 invalid_argument: %', v_error
            using errcode = 'RQ711';
    end if;
end;
$$;

create or replace function rowq.internal_push_result(
    p_queue_id    integer,
    p_message_ids bigint[],
    p_state       text,
    p_errors      text[] default null,
    p_results     jsonb default null,
    p_asked_ids   bigint[] default null
)
returns void
language plpgsql
as $$
-- purpose   Record how messages ended, if the queue keeps results; p_results follows p_asked_ids.
-- locks     result rows
declare
    v_is_kept boolean;
begin
    -- complete has checked the setting.
    if p_state <> 'completed' then
        select q.result_seconds > 0 into v_is_kept
        from rowq.queue q
        where q.queue_id = p_queue_id;
        if v_is_kept is not true then
            return;
        end if;
    end if;

    -- A dead message that is cancelled or purged already has a row.
    insert into rowq.result (queue_id, message_id, finished_at, state, result, last_error)
    select p_queue_id, u.message_id, clock_timestamp(), p_state,
           nullif(p_results -> (array_position(p_asked_ids, u.message_id) - 1), 'null'),
           left(u.last_error, 2000)
    from unnest(p_message_ids, p_errors) u (message_id, last_error)
    on conflict (queue_id, message_id) do update
    set finished_at = excluded.finished_at,
        state       = excluded.state,
        result      = excluded.result,
        last_error  = coalesce(excluded.last_error, result.last_error);
end;
$$;

create or replace function rowq.internal_poll_result(
    p_queue_name text,
    p_message_id bigint,
    p_until      timestamp with time zone,
    p_pause      double precision,
    out o_answer jsonb,
    out o_pause  double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- purpose   Return the row of get_result as a JSON object, or the pause before the next poll.
-- errors    RQ701 RQ711
-- differs   other engines do not run wait_for_result with the caller's search_path
--
-- p_pause is the pause before this poll.
declare
    v_queue_id       integer;
    v_result_seconds double precision;
    v_is_last        constant boolean := clock_timestamp() >= p_until;
    v_has_ended      boolean;
begin
    select q.queue_id, q.result_seconds into v_queue_id, v_result_seconds
    from rowq.queue q
    where q.queue_name = p_queue_name;

    -- The first and the last poll read the message's state, the others only the result by its key.
    -- If the queue is not here, get_result forwards to another node of a cluster, or raises the
    -- error.
    if v_queue_id is null or p_pause is null or v_is_last then
        select to_jsonb(g), g.finished_at is not null
        into o_answer, v_has_ended
        from rowq.get_result(p_queue_name, p_message_id) g;
        if v_has_ended is not false or v_is_last then
            return;
        end if;
        o_answer := null;
    else
        select to_jsonb(h) into o_answer
        from (
            select r.message_id, r.state, r.finished_at, r.result, r.last_error
            from rowq.result r
            where r.queue_id = v_queue_id
              and r.message_id = p_message_id
        ) h;
        if found then
            return;
        end if;
    end if;

    if v_queue_id is null and p_pause is null then
        v_result_seconds := (
            select s.result_seconds from rowq.queue_stats(p_queue_name, 1) s
        );
    end if;
    if v_result_seconds = 0 then
        raise exception
            'RQ711 invalid_argument: the queue does not keep results: result_seconds is 0'
            using errcode = 'RQ711';
    end if;

    o_pause := least(
        coalesce(p_pause * 2, 0.02), 0.25, extract(epoch from p_until - clock_timestamp())
    );
end;
$$;

create or replace function rowq.internal_purge_results(
    p_queue_id    integer,
    p_seconds     double precision,
    p_limit       integer,
    p_until       timestamp with time zone,
    p_pending_seq bigint,
    p_pending_xid xid8
)
returns integer
language plpgsql
set lock_timeout = '1s'
as $$
-- purpose   Delete up to p_limit expired results; until p_until, up to ten times as many.
-- locks     result rows, skipping locked ones; the table, waits up to 1 s
declare
    v_before constant timestamp with time zone :=
        clock_timestamp() - make_interval(secs => p_seconds);
    v_from   timestamp with time zone;
    v_row    record;
    v_purged integer := 0;
begin
    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_queue_id, -7::smallint /* result */)
    );
    -- Delete row by row: the planner may make "= any" a filter over all rows.
    for v_row in
        select r.message_id
        from rowq.result r
        where r.queue_id = p_queue_id
          and r.finished_at >= v_from
          and r.finished_at < v_before
        order by r.queue_id, r.finished_at
        limit 10 * p_limit
        for update skip locked
    loop
        delete from rowq.result r
        where r.queue_id = p_queue_id
          and r.message_id = v_row.message_id;
        v_purged := v_purged + 1;
        exit when v_purged >= p_limit and clock_timestamp() > p_until;
    end loop;

    if v_purged = 0 and p_seconds = 0 then
        -- A queue that never kept results needs no floor.
        perform 1
        from rowq.floor f
        where f.queue_id = p_queue_id
          and f.lane = -7 /* result */
        limit 1;
        if not found then
            return 0;
        end if;
    end if;
    perform rowq.internal_move_floor(
        p_queue_id, -7::smallint /* result */, v_purged > 0, true, p_pending_seq, p_pending_xid
    );
    return v_purged;
end;
$$;
