-- Store: new messages, dedup keys, and delayed messages that are due.
--
-- A message is one row of message and one row of the place where it waits: ready, delayed, grouped
-- or blocked. A batch takes a few statements, not a few for each message; the plain case has a path
-- of its own. A dedup key is a row of dedup while its message is unfinished. A producer of the same
-- key waits for that row and gets the first message's id back as a duplicate. promote moves what is
-- due from delayed to ready, or into its group.
--
--   enqueue_batch -> reserve_dedup_keys, store_plain, store_unkeyed
--   dequeue_fast, maintain_queue -> promote -> push_ready
--   release, reset, pass_group_slots, ... -> push_ready
--   retry_later -> push_delayed -> push_ready
--
-- Writes dedup, delayed, expiry, group_waiting, message, ready. Only reads floor.

create or replace function rowq.internal_reserve_dedup_keys(
    p_queue_id    integer,
    p_message_ids bigint[],
    p_dedup_keys  text[]
)
returns bigint[]
language plpgsql
as $$
-- purpose   Reserve dedup keys; return for each message its own id, or the id of the message that owns its key.
-- locks     new dedup rows, in key order; waits for other open enqueues of the same keys
declare
    v_kept_ids bigint[];
begin
    loop
        -- The block is a subtransaction: what it has taken is given back before it begins anew.
        begin
            -- Insert in key order, so that two batches with the same keys cannot wait for each
            -- other. Whoever owned a key when the statement began is its owner also where it ends
            -- meanwhile.
            with keys as materialized (
                select distinct on (m.dedup_key) m.dedup_key, m.message_id
                from unnest(p_message_ids, p_dedup_keys) m (message_id, dedup_key)
                where m.dedup_key is not null
                order by m.dedup_key, m.message_id
            ),
            added as (
                insert into rowq.dedup (queue_id, message_id, dedup_key)
                select p_queue_id, k.message_id, k.dedup_key
                from keys k
                order by k.dedup_key
                on conflict (queue_id, dedup_key) do nothing
                returning message_id, dedup_key
            )
            select array_agg(
                       case when m.dedup_key is null then m.message_id
                            else coalesce(a.message_id, d.message_id)
                       end
                       order by m.place
                   )
            into v_kept_ids
            from unnest(p_message_ids, p_dedup_keys) with ordinality m (
                message_id, dedup_key, place
            )
            left join added a on a.dedup_key = m.dedup_key
            -- A stricter snapshot may show a former owner beside this transaction's own message.
            left join lateral (
                select max(x.message_id) as message_id
                from rowq.dedup x
                where x.queue_id = p_queue_id
                  and x.dedup_key = m.dedup_key
            ) d on true;
            exit when array_position(v_kept_ids, null) is null;

            -- What others have committed while this call waited for them is seen by a new look.
            select array_agg(
                       coalesce(
                           v_kept_ids[m.place], (
                               select max(x.message_id)
                               from rowq.dedup x
                               where x.queue_id = p_queue_id
                                 and x.dedup_key = m.dedup_key
                           )
                       )
                       order by m.place
                   )
            into v_kept_ids
            from unnest(p_dedup_keys) with ordinality m (dedup_key, place);
            exit when array_position(v_kept_ids, null) is null;

            -- A key whose owner was finished in between is free again. To wait for it now, with
            -- later keys in hand, could end in a deadlock.
            raise sqlstate 'RQAGN';
        exception
            when sqlstate 'RQAGN' then
                v_kept_ids := null;
        end;
    end loop;
    return v_kept_ids;
end;
$$;

create or replace function rowq.internal_store_plain(
    p_queue_id   integer,
    p_messages   jsonb,
    p_max_length integer,
    p_now        timestamp with time zone,
    out o_message_ids bigint[],
    out o_lanes       smallint[]
)
language plpgsql
as $$
-- purpose   Store a batch whose messages have short bodies, good priorities and nothing else; return nulls for another one.
-- locks     new rows only
-- differs   only here: most batches are such, and need no common table of their messages
begin
    -- A value of a table's column may be compressed, and would be unpacked for each look into it.
    p_messages := p_messages #> '{}';

    if p_messages is null
       or jsonb_typeof(p_messages) <> 'array'
       or jsonb_array_length(p_messages) > 10000
       or exists (
        select 1
        from jsonb_array_elements(p_messages) e (message)
        where case
                  when jsonb_typeof(e.message) <> 'object' then true
                  when pg_column_size(e.message) > p_max_length then true
                  -- A body that is no JSON string may be much longer as a text: 1e9999 has ten
                  -- thousand digits.
                  when jsonb_typeof(e.message -> 'body') <> 'string'
                       and octet_length(e.message ->> 'body') > p_max_length then true
                  when e.message - '{body,priority}'::text[] <> '{}' then true
                  when jsonb_typeof(e.message -> 'priority') = 'number'
                      then (e.message ->> 'priority') not in (
                          '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'
                      )
                  else jsonb_typeof(e.message -> 'priority') <> 'null'
              end
    ) then
        return;
    end if;

    -- Arrays of numbers and lanes cost less than rows that one insert returns to another.
    select array_agg(nextval('rowq.message_seq')),
           array_agg((coalesce((e.message ->> 'priority')::integer, 5) * 2 + 1)::smallint)
    into o_message_ids, o_lanes
    from jsonb_array_elements(p_messages) e (message);

    insert into rowq.message (queue_id, message_id, enqueued_at, body)
    select p_queue_id, n.message_id, p_now, n.message ->> 'body'
    from rows from (jsonb_array_elements(p_messages), unnest(o_message_ids)) n (
        message, message_id
    );

    insert into rowq.ready (queue_id, lane, seq, message_id)
    select p_queue_id, n.lane, n.message_id, n.message_id
    from unnest(o_message_ids, o_lanes) n (message_id, lane);
end;
$$;

create or replace function rowq.internal_store_unkeyed(
    p_queue_id   integer,
    p_messages   jsonb,
    p_max_length integer,
    p_now        timestamp with time zone,
    out o_message_ids bigint[],
    out o_lanes       smallint[]
)
language plpgsql
as $$
-- purpose   Store the messages of a batch of which none has a dedup key.
-- locks     new rows only
-- errors    RQ711
-- differs   elsewhere part of enqueue_batch: here one statement writes all rows
declare
    v_expires boolean;
begin
    with given as materialized (
        select nextval('rowq.message_seq') as message_id, p.*,
               (p.priority * 2 + 1)::smallint as lane,
               coalesce(p.run_at, p_now + make_interval(secs => p.delay_seconds)) as due_at,
               p_now + make_interval(secs => p.expire_seconds) as expires_at
        from rowq.internal_parse_messages(p_messages, p_max_length) p
    ),
    stored as (
        insert into rowq.message (
            queue_id, max_attempts, message_id, enqueued_at, message_type, headers, body,
            body_binary, expires_at
        )
        select p_queue_id, g.max_attempts, g.message_id, p_now, g.message_type, g.headers, g.body,
               g.body_binary, g.expires_at
        from given g
    ),
    postpone as (
        insert into rowq.delayed (queue_id, lane, message_id, due_at)
        select p_queue_id, g.lane, g.message_id, g.due_at
        from given g
        where g.due_at > p_now
    ),
    queued as (
        insert into rowq.ready (queue_id, lane, seq, message_id)
        select p_queue_id, g.lane, g.message_id, g.message_id
        from given g
        where g.due_at <= p_now
           or g.due_at is null
    ),
    expiring as (
        insert into rowq.expiry (queue_id, lane, expires_at, message_id, seq)
        select p_queue_id, g.lane, least(g.expires_at, p_now + interval '1 day'), g.message_id,
               g.message_id
        from given g
        where g.expires_at is not null
    )
    select array_agg(g.message_id order by g.place),
           array_agg(g.lane) filter (where g.due_at <= p_now or g.due_at is null),
           bool_or(g.expires_at is not null)
    into o_message_ids, o_lanes, v_expires
    from given g;
    if v_expires then
        perform rowq.internal_open_lanes(p_queue_id, '{-6}'::smallint[] /* expiry */);
    end if;
end;
$$;

create or replace function rowq.internal_promote(p_queue_id integer, p_limit integer)
returns integer
language plpgsql
as $$
-- purpose   Move up to p_limit due messages to the tails of their lanes, or into their groups, earliest first.
-- locks     delayed rows, passing over locked ones; as internal_try_take_group_slot
declare
    -- The moment is a constant, because a scan that compares with clock_timestamp() itself would
    -- not stop at the last row that is due.
    v_now         constant timestamp with time zone := clock_timestamp();
    v_from        constant timestamp with time zone := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_queue_id, -2::smallint /* delayed */)
    );
    v_row         record;
    v_message_ids bigint[];
    v_lanes       smallint[];
    v_attempts    smallint[];
    v_errors      text[];
    v_last_due_at timestamp with time zone;
    v_later       timestamp with time zone;
    v_promoted    integer := 0;
    v_has_slot    boolean;
    v_is_late     boolean := false;
begin
    for v_row in
        select d.message_id, d.lane, d.attempt, d.last_error, d.due_at, d.group_key
        from rowq.delayed d
        where d.queue_id = p_queue_id
          and d.due_at >= v_from
          and d.due_at <= v_now
        order by d.queue_id, d.due_at, d.message_id
        limit p_limit
        for update skip locked
    loop
        v_last_due_at := v_row.due_at;
        if v_row.group_key is not null then
            -- Wait for a producer once a call, and no longer than a moment.
            v_has_slot := case
                when not v_is_late
                    then rowq.internal_try_take_group_slot(p_queue_id, v_row.group_key)
            end;
            if v_has_slot is null then
                v_is_late := true;
                v_later := clock_timestamp() + interval '0.5 seconds';
                update rowq.delayed d
                set due_at = v_later
                where d.queue_id = p_queue_id
                  and d.message_id = v_row.message_id;
                continue;
            end if;
        end if;

        -- Delete the rows one by one, because their ids may lie far apart, and the planner may make
        -- "= any" a filter over all rows.
        delete from rowq.delayed d
        where d.queue_id = p_queue_id
          and d.message_id = v_row.message_id;
        v_promoted := v_promoted + 1;
        if v_row.group_key is not null and not v_has_slot then
            insert into rowq.group_waiting (queue_id, lane, message_id, group_key, last_error)
            values (
                p_queue_id, v_row.lane, v_row.message_id, v_row.group_key, v_row.last_error
            );
            continue;
        end if;
        v_message_ids := v_message_ids || v_row.message_id;
        v_lanes := v_lanes || v_row.lane;
        v_attempts := v_attempts || v_row.attempt;
        v_errors := v_errors || v_row.last_error;
    end loop;
    if v_message_ids is not null then
        perform rowq.internal_push_ready(p_queue_id, v_lanes, v_message_ids, v_attempts, v_errors);
    end if;
    if v_promoted > 0 and random() < 0.08 * v_promoted then
        perform rowq.internal_move_floor(
            p_queue_id, -2::smallint /* delayed */, true,
            p_cap => (extract(epoch from v_last_due_at) * 1000000)::bigint + 1
        );
    end if;
    return v_promoted;
end;
$$;

create or replace function rowq.internal_push_ready(
    p_queue_id    integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_errors      text[]
)
returns void
language plpgsql
as $$
-- purpose   Append messages to lanes, in the order of the arrays, under new numbers.
-- locks     new ready and expiry rows
-- differs   notifies the sessions that listen
begin
    -- Get the transaction id before the numbers: internal_move_floor relies on this order.
    perform pg_current_xact_id();
    perform rowq.internal_open_lanes(p_queue_id, p_lanes);

    -- internal_expire looks for a message where this says. Only a queue that has had messages that
    -- expire has that lane, and without it the messages are not looked up.
    with pushed as (
        insert into rowq.ready as r (queue_id, lane, message_id, attempt, last_error)
        select p_queue_id, u.lane, u.message_id, u.attempt, u.last_error
        from unnest(p_lanes, p_message_ids, p_attempts, p_errors)
            with ordinality u (lane, message_id, attempt, last_error, place)
        order by u.place
        returning r.lane, r.seq, r.message_id
    )
    insert into rowq.expiry (queue_id, lane, expires_at, message_id, seq)
    select p_queue_id, p.lane, greatest(m.expires_at, clock_timestamp()), p.message_id, p.seq
    from pushed p
    cross join lateral (
        select case
                   when x.expires_at is not null
                       then least(x.expires_at, clock_timestamp() + interval '1 day')
               end as expires_at
        from rowq.message x
        where x.queue_id = p_queue_id
          and x.message_id = p.message_id
        offset 0
    ) m
    where m.expires_at is not null
      and exists (
          select
          from rowq.floor f
          where f.queue_id = p_queue_id
            and f.lane = -6 /* expiry */
      );

    perform rowq.internal_notify(p_queue_id);
end;
$$;

create or replace function rowq.internal_push_delayed(
    p_queue_id    integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_due_ats     timestamp with time zone[],
    p_now         timestamp with time zone,
    p_error       text
)
returns void
language plpgsql
as $$
-- purpose   Let messages wait for their time; those that are due by p_now are ready at once.
-- locks     new delayed, ready and expiry rows
declare
    v_ready record;
begin
    insert into rowq.delayed (queue_id, lane, attempt, message_id, due_at, last_error)
    select p_queue_id, u.lane, u.attempt, u.message_id, u.due_at, p_error
    from unnest(p_lanes, p_message_ids, p_attempts, p_due_ats) u (lane, message_id, attempt, due_at)
    where u.due_at > p_now;

    perform rowq.internal_record_expiry(p_queue_id, p_message_ids);

    select array_agg(u.lane) lanes, array_agg(u.message_id) ids, array_agg(u.attempt) attempts
    into v_ready
    from unnest(p_lanes, p_message_ids, p_attempts, p_due_ats) u (lane, message_id, attempt, due_at)
    where u.due_at <= p_now;

    if v_ready.ids is not null then
        perform rowq.internal_push_ready(
            p_queue_id, v_ready.lanes, v_ready.ids, v_ready.attempts,
            array_fill(p_error, array[cardinality(v_ready.ids)])
        );
    end if;
end;
$$;
