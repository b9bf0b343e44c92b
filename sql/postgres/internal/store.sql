-- Store: new messages, dedup keys, and delayed messages that are due.
--
-- A message is one row of message and one row of the table where it waits: ready, delayed,
-- group_waiting or blocked. A batch takes a few statements, not a few per message; a plain batch
-- has a fast path. An unfinished message with a dedup key has a row in dedup. A producer of the
-- same key waits for that row and gets the first message's id back as a duplicate. promote moves
-- due messages from delayed to ready, or into their groups.
--
--   enqueue, publish, refuse_predecessors, ... -> message_error
--   publish_batch, store_unkeyed, store_keyed -> parse_messages -> message_error, refuse_bad_value
--   parse_predecessors -> refuse_bad_value
--   enqueue_batch -> store_plain, store_unkeyed, store_keyed -> reserve_dedup_keys
--   dequeue_fast, maintain_queue -> promote -> push_ready
--   release, reset, pass_group_slots, ... -> push_ready
--   retry_later, release -> push_delayed -> push_ready
--
-- Writes dedup, delayed, expiry, group_waiting, message, ready. Only reads floor.

create or replace function rowq.internal_message_error(
    p_body                text,
    p_body_binary         bytea,
    p_message_type        text,
    p_headers             jsonb,
    p_priority            integer,
    p_delay_seconds       double precision,
    p_run_at              timestamp with time zone,
    p_dedup_key           text,
    p_max_attempts        integer,
    p_group_key           text,
    p_predecessor_ids     bigint[],
    p_on_predecessor_dead text,
    p_expire_seconds      double precision,
    p_producer_name       text
)
returns text
language plpgsql
as $$
-- purpose   Return the first error in the arguments of enqueue, or null.
begin
    return case
        when p_priority is null or p_priority not between 0 and 9
            then 'priority must be between 0 and 9, got ' || coalesce(p_priority::text, 'null')
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary are mutually exclusive'
        when char_length(p_message_type) > 200
            then 'message_type must be at most 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at are mutually exclusive'
        when p_delay_seconds not between 0 and 315360000
            then format('delay_seconds must be between 0 and 315360000, got %s', p_delay_seconds)
        when p_run_at > clock_timestamp() + interval '3650 days' or not isfinite(p_run_at)
            then 'run_at must be within the next 10 years'
        when char_length(p_dedup_key) not between 1 and 200
            then 'dedup_key must be 1 to 200 characters'
        when starts_with(p_dedup_key, 'schedule:')
            then 'dedup_key must not begin with schedule:, which is reserved'
        when char_length(p_group_key) not between 1 and 200
            then 'group_key must be 1 to 200 characters'
        when not rowq.internal_is_id_list(p_predecessor_ids)
            then 'predecessor_ids must be a list of at most 10000 ids without nulls'
        when p_on_predecessor_dead not in ('hold', 'continue', 'fail')
            then 'on_predecessor_dead must be hold, continue or fail, got '
                || left(p_on_predecessor_dead, 100)
        when p_max_attempts not between 0 and 10000
            then format('max_attempts must be between 0 and 10000, got %s', p_max_attempts)
        when p_expire_seconds not between 0.001 and 315360000
            then format('expire_seconds must be between 0.001 and 315360000, got %s',
                        p_expire_seconds)
        when char_length(p_producer_name) > 200
            then 'producer_name must be at most 200 characters'
        when p_headers is not null
            then rowq.internal_json_error(
                'headers', p_headers, 'object', 'strict $.**{20}', 65536
            )
    end;
end;
$$;

create or replace function rowq.internal_parse_messages(
    p_messages   jsonb,
    p_max_length integer
)
returns table (
    "position"     integer,
    body           text,
    body_binary    bytea,
    message_type   text,
    headers        jsonb,
    priority       integer,
    delay_seconds  double precision,
    run_at         timestamp with time zone,
    dedup_key      text,
    max_attempts   integer,
    group_key      text,
    expire_seconds double precision,
    producer_name  text
)
language plpgsql
as $$
-- purpose   Parse and check the messages of a batch.
-- errors    RQ711
#variable_conflict use_column
declare
    v_position integer;
    v_error    text;
begin
    if p_messages is null
       or jsonb_typeof(p_messages) <> 'array'
       or jsonb_array_length(p_messages) > 10000 then
        raise exception
            'RQ711 invalid_argument: messages must be a JSON array of at most 10000 objects'
            using errcode = 'RQ711';
    end if;

    select e.position into v_position
    from jsonb_array_elements(p_messages) with ordinality e (message, position)
    where jsonb_typeof(e.message) <> 'object'
    limit 1;
    if found then
        raise exception 'RQ711 invalid_argument: a message must be a JSON object (message %)',
            v_position
            using errcode = 'RQ711';
    end if;

    select e.position, format(
               case when t.wanted is null then 'unknown key %I' else '%I must be a JSON %s' end,
               left(k.key, 100), t.wanted
           )
    into v_position, v_error
    from jsonb_array_elements(p_messages) with ordinality e (message, position)
    cross join lateral jsonb_each(e.message) k (key, value)
    left join (
        values
            ('body', 'value'), ('body_base64', 'string'), ('message_type', 'string'),
            ('headers', 'object'), ('priority', 'number'), ('delay_seconds', 'number'),
            ('run_at', 'string'), ('dedup_key', 'string'), ('max_attempts', 'number'),
            ('group_key', 'string'), ('predecessor_ids', 'array'),
            ('predecessor_positions', 'array'), ('on_predecessor_dead', 'string'),
            ('expire_seconds', 'number'), ('producer_name', 'string')
    ) t (key, wanted) on t.key = k.key
    where t.wanted is null
       or t.wanted not in ('value', jsonb_typeof(k.value)) and k.value <> 'null'
    limit 1;
    if found then
        raise exception 'RQ711 invalid_argument: % (message %)', v_error, v_position
            using errcode = 'RQ711';
    end if;

    begin
        for position, body, body_binary, message_type, headers, priority, delay_seconds, run_at,
            dedup_key, max_attempts, group_key, expire_seconds, producer_name in
            select e.position::integer,
                   case when e.body <> 'null' then e.body #>> '{}' end,
                   decode(e.body_base64, 'base64'),
                   e.message_type,
                   nullif(e.headers, 'null'),
                   coalesce(e.priority, 5),
                   e.delay_seconds,
                   case when e.run_at is not null then rowq.internal_parse_timestamp(e.run_at) end,
                   e.dedup_key,
                   e.max_attempts,
                   e.group_key,
                   e.expire_seconds,
                   e.producer_name
            from rows from (
                jsonb_to_recordset(p_messages) as (
                    body           jsonb,
                    body_base64    text,
                    message_type   text,
                    headers        jsonb,
                    priority       integer,
                    delay_seconds  double precision,
                    run_at         text,
                    dedup_key      text,
                    max_attempts   integer,
                    group_key      text,
                    expire_seconds double precision,
                    producer_name  text
                )
            ) with ordinality e (
                body, body_base64, message_type, headers, priority, delay_seconds, run_at,
                dedup_key, max_attempts, group_key, expire_seconds, producer_name, position
            )
        loop
            -- Most messages are a short text with at most a priority and a delay: skip the rest.
            if priority not between 0 and 9
               or delay_seconds not between 0 and 315360000
               or octet_length(body) > p_max_length
               or num_nonnulls(
                   body_binary, message_type, headers, run_at, dedup_key, max_attempts, group_key,
                   expire_seconds, producer_name
               ) > 0 then
                v_error := coalesce(
                    rowq.internal_message_error(
                        body, body_binary, message_type, headers, priority, delay_seconds, run_at,
                        dedup_key, max_attempts, group_key, null, null, expire_seconds,
                        producer_name
                    ),
                    rowq.internal_body_error(body, body_binary, p_max_length)
                );
                if v_error is not null then
                    raise exception 'RQ711 invalid_argument: % (message %)', v_error, position
                        using errcode = 'RQ711';
                end if;
            end if;
            return next;
        end loop;
    exception
        when data_exception then
            perform rowq.internal_refuse_bad_value(e.message, e.position::integer)
            from jsonb_array_elements(p_messages) with ordinality e (message, position);
            raise;
    end;
end;
$$;

create or replace function rowq.internal_refuse_bad_value(p_message jsonb, p_position integer)
returns void
language plpgsql
as $$
-- purpose   Refuse a message of a batch that has an invalid value, and name its key and position.
-- errors    RQ711
declare
    v_key text;
begin
    foreach v_key in array array[
        'priority', 'max_attempts', 'delay_seconds', 'run_at', 'body_base64', 'predecessor_ids',
        'predecessor_positions'
    ] loop
        begin
            case v_key
                when 'delay_seconds' then
                    perform (p_message ->> v_key)::double precision;
                when 'run_at' then
                    perform rowq.internal_parse_timestamp(p_message ->> v_key);
                when 'body_base64' then
                    perform decode(p_message ->> v_key, 'base64');
                when 'predecessor_ids', 'predecessor_positions' then
                    perform max(e.id::bigint)
                    from jsonb_array_elements_text(nullif(p_message -> v_key, 'null')) e (id);
                else
                    perform (p_message ->> v_key)::integer;
            end case;
        exception
            when data_exception then
                raise exception 'RQ711 invalid_argument: %: % (message %)',
                    v_key, sqlerrm, p_position
                    using errcode = 'RQ711';
        end;
    end loop;
end;
$$;

create or replace function rowq.internal_reserve_dedup_keys(
    p_queue_id    integer,
    p_message_ids bigint[],
    p_dedup_keys  text[]
)
returns bigint[]
language plpgsql
as $$
-- purpose   Reserve dedup keys; return per message its own id, or the id of its key's owner.
-- locks     new dedup rows, in key order; waits for other open enqueues of the same keys
declare
    v_kept_ids bigint[];
begin
    loop
        -- The block is a subtransaction: a retry first rolls back the keys it has reserved.
        begin
            -- Insert in key order, so that two batches with the same keys cannot deadlock. The
            -- owner of a key is the one at the start of the statement, even if it ends during it.
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
                       order by m.position
                   )
            into v_kept_ids
            from unnest(p_message_ids, p_dedup_keys) with ordinality m (
                message_id, dedup_key, position
            )
            left join added a on a.dedup_key = m.dedup_key
            -- Under repeatable read the snapshot may show a former owner and our own message.
            left join lateral (
                select max(x.message_id) as message_id
                from rowq.dedup x
                where x.queue_id = p_queue_id
                  and x.dedup_key = m.dedup_key
            ) d on true;
            exit when array_position(v_kept_ids, null) is null;

            -- A new statement sees the owners that were committed while this one waited.
            select array_agg(
                       coalesce(
                           v_kept_ids[m.position], (
                               select max(x.message_id)
                               from rowq.dedup x
                               where x.queue_id = p_queue_id
                                 and x.dedup_key = m.dedup_key
                           )
                       )
                       order by m.position
                   )
            into v_kept_ids
            from unnest(p_dedup_keys) with ordinality m (dedup_key, position);
            exit when array_position(v_kept_ids, null) is null;

            -- An owner has finished in between, so its key is free again. Waiting for it while
            -- holding later keys could deadlock.
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
-- purpose   Store a batch of short bodies and priorities only; return nulls for any other batch.
-- locks     new rows only
-- differs   PostgreSQL only: skips parse_messages for the usual batch
begin
    -- Copy the value: one from a table may be compressed, and each access would decompress it.
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
                  -- A body that is not a JSON string can be much longer as text: 1e9999 has 10000
                  -- digits.
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

    -- Arrays of ids and lanes cost less than passing rows from one insert to another.
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
-- purpose   Store a batch without dedup keys, groups and predecessors.
-- locks     new rows only
-- errors    RQ711
-- differs   part of enqueue_batch elsewhere; one statement writes all rows here
declare
    v_expires boolean;
begin
    with input as materialized (
        select nextval('rowq.message_seq') as message_id, p.*,
               (p.priority * 2 + 1)::smallint as lane,
               coalesce(p.run_at, p_now + make_interval(secs => p.delay_seconds)) as due_at,
               p_now + make_interval(secs => p.expire_seconds) as expires_at
        from rowq.internal_parse_messages(p_messages, p_max_length) p
    ),
    stored as (
        insert into rowq.message (
            queue_id, max_attempts, message_id, enqueued_at, message_type, headers, body,
            body_binary, expires_at, producer_name
        )
        select p_queue_id, g.max_attempts, g.message_id, p_now, g.message_type, g.headers, g.body,
               g.body_binary, g.expires_at, g.producer_name
        from input g
    ),
    postpone as (
        insert into rowq.delayed (queue_id, lane, message_id, due_at)
        select p_queue_id, g.lane, g.message_id, g.due_at
        from input g
        where g.due_at > p_now
    ),
    queued as (
        insert into rowq.ready (queue_id, lane, seq, message_id)
        select p_queue_id, g.lane, g.message_id, g.message_id
        from input g
        where g.due_at <= p_now
           or g.due_at is null
    ),
    expiring as (
        insert into rowq.expiry (queue_id, lane, expires_at, message_id, seq)
        select p_queue_id, g.lane, least(g.expires_at, p_now + interval '1 day'), g.message_id,
               g.message_id
        from input g
        where g.expires_at is not null
    )
    select array_agg(g.message_id order by g.position),
           array_agg(g.lane) filter (where g.due_at <= p_now or g.due_at is null),
           bool_or(g.expires_at is not null)
    into o_message_ids, o_lanes, v_expires
    from input g;
    if v_expires then
        perform rowq.internal_open_lanes(p_queue_id, '{-6}'::smallint[] /* expiry */);
    end if;
end;
$$;

create or replace function rowq.internal_store_keyed(
    p_queue_id   integer,
    p_queue_name text,
    p_messages   jsonb,
    p_max_length integer,
    p_now        timestamp with time zone
)
returns table ("position" integer, message_id bigint, outcome text)
language plpgsql
as $$
-- purpose   Store a batch with dedup keys, groups or predecessors, and notify listeners.
-- locks     as enqueue; dedup and group keys in key order
-- errors    RQ701 RQ711
#variable_conflict use_column
declare
    v_ids          bigint[];
    v_max_attempts integer[];
    v_types        text[];
    v_dedup_keys   text[];
    v_group_keys   text[];
    v_headers      jsonb[];
    v_bodies       text[];
    v_binaries     bytea[];
    v_expires_ats  timestamp with time zone[];
    v_producers    text[];
    v_lanes        smallint[];
    v_due_ats      timestamp with time zone[];
    v_kept_ids     bigint[];
    v_awaited      bigint[];
    v_links        rowq.blocked[];
    v_blocked      bigint[];
    v_waiting      bigint[];
begin
    -- Use an array per column: an upgrade that adds a column changes the row type of the table
    -- under a running call.
    select array_agg(nextval('rowq.message_seq')), array_agg(p.max_attempts),
           array_agg(p.message_type), array_agg(p.dedup_key), array_agg(p.group_key),
           array_agg(p.headers), array_agg(p.body), array_agg(p.body_binary),
           array_agg(p_now + make_interval(secs => p.expire_seconds)), array_agg(p.producer_name),
           array_agg((p.priority * 2 + 1)::smallint),
           array_agg(coalesce(p.run_at, p_now + make_interval(secs => p.delay_seconds)))
    into v_ids, v_max_attempts, v_types, v_dedup_keys, v_group_keys, v_headers, v_bodies,
         v_binaries, v_expires_ats, v_producers, v_lanes, v_due_ats
    from rowq.internal_parse_messages(p_messages, p_max_length) p;
    if v_ids is null then
        return;
    end if;

    v_kept_ids := rowq.internal_reserve_dedup_keys(p_queue_id, v_ids, v_dedup_keys);

    -- Find the messages that others of this batch wait for, to write has_successors at once.
    select array_agg(distinct v_kept_ids[p.position]) into v_awaited
    from (
        select e.position::integer as position
        from jsonb_path_query(
            p_messages, '$[*].predecessor_positions[*] ? (@ >= 1 && @ <= 10000)'
        ) e ("position")
    ) p
    where v_kept_ids[p.position] = v_ids[p.position];

    insert into rowq.message (
        queue_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
        headers, body, body_binary, group_key, has_successors, expires_at, producer_name
    )
    select p_queue_id, m.max_attempts, m.message_id, p_now, m.message_type, m.dedup_key,
           m.headers, m.body, m.body_binary, m.group_key,
           case when m.message_id = any (v_awaited) then true end, m.expires_at,
           m.producer_name
    from unnest(
        v_ids, v_kept_ids, v_max_attempts, v_types, v_dedup_keys, v_group_keys, v_headers,
        v_bodies, v_binaries, v_expires_ats, v_producers
    ) m (
        message_id, kept_id, max_attempts, message_type, dedup_key, group_key, headers, body,
        body_binary, expires_at, producer_name
    )
    where m.message_id = m.kept_id;
    perform rowq.internal_require_queue_row(p_queue_id, p_queue_name);

    if array_remove(v_expires_ats, null) <> '{}' then
        perform rowq.internal_open_lanes(p_queue_id, '{-6}'::smallint[] /* expiry */);
        insert into rowq.expiry (queue_id, lane, expires_at, message_id, seq)
        select p_queue_id, m.lane, least(m.expires_at, p_now + interval '1 day'), m.message_id,
               m.message_id
        from unnest(v_ids, v_kept_ids, v_lanes, v_expires_ats) m (
            message_id, kept_id, lane, expires_at
        )
        where m.message_id = m.kept_id
          and m.expires_at is not null;
    end if;

    v_links := rowq.internal_parse_predecessors(
        p_queue_id, p_messages, v_ids, v_group_keys, v_kept_ids, v_lanes, v_due_ats, p_now
    );

    -- Join groups before locking predecessors: a session that ends a predecessor waits for this
    -- transaction, which must not wait for any session from then on.
    perform rowq.internal_open_lanes(p_queue_id, array_agg(m.lane))
    from unnest(v_lanes, v_due_ats) m (lane, due_at)
    where m.due_at <= p_now or m.due_at is null;
    if v_links <> '{}' then
        -- archive checks for blocked messages only if this lane exists.
        perform rowq.internal_open_lanes(p_queue_id, '{-4}'::smallint[] /* deferred */);
    end if;
    select rowq.internal_join_groups(
               p_queue_id, array_agg(m.group_key), array_agg(m.message_id), array_agg(m.lane)
           )
    into v_waiting
    from unnest(v_ids, v_kept_ids, v_group_keys, v_lanes, v_due_ats) m (
        message_id, kept_id, group_key, lane, due_at
    )
    where m.message_id = m.kept_id
      and m.group_key is not null
      and (m.due_at <= p_now or m.due_at is null)
      and not exists (
          select
          from unnest(v_links) t
          where t.message_id = m.message_id
      )
    having count(*) > 0;

    v_blocked := rowq.internal_block_batch(p_queue_id, v_links, v_awaited);

    insert into rowq.delayed (queue_id, lane, message_id, due_at, group_key)
    select p_queue_id, m.lane, m.message_id, m.due_at, m.group_key
    from unnest(v_ids, v_kept_ids, v_group_keys, v_lanes, v_due_ats) m (
        message_id, kept_id, group_key, lane, due_at
    )
    where m.message_id = m.kept_id
      and m.due_at > p_now
      and m.message_id <> all (v_blocked);

    insert into rowq.ready (queue_id, lane, seq, message_id)
    select p_queue_id, m.lane, m.message_id, m.message_id
    from unnest(v_ids, v_kept_ids, v_lanes, v_due_ats) m (message_id, kept_id, lane, due_at)
    where m.message_id = m.kept_id
      and (m.due_at <= p_now or m.due_at is null)
      and m.message_id <> all (v_blocked)
      and m.message_id = any (v_waiting) is not true;
    if found and rowq.internal_is_listened(p_queue_id) then
        perform pg_notify(rowq.internal_channel(p_queue_id), p_queue_name);
    end if;

    return query
    select m.position::integer, m.kept_id,
           case when m.message_id = m.kept_id then 'enqueued' else 'duplicate' end
    from unnest(v_ids, v_kept_ids) with ordinality m (message_id, kept_id, position);
end;
$$;

create or replace function rowq.internal_promote(p_queue_id integer, p_limit integer)
returns integer
language plpgsql
as $$
-- purpose   Move up to p_limit due messages to their lanes or groups, earliest first.
-- locks     delayed rows, skipping locked ones; as internal_try_take_group_slot
declare
    -- A constant: a scan that compares with clock_timestamp() would not stop at the last due row.
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
            -- Wait for a producer at most once per call; postpone the others by 0.5 seconds.
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

        -- Delete one by one: ids may be far apart, and the planner may turn "= any" into a filter
        -- over all rows.
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
-- purpose   Append messages to their lanes, in the order of the arrays.
-- locks     new ready and expiry rows
-- differs   notifies listeners
begin
    -- Get the transaction id before the numbers: internal_move_floor relies on this order.
    perform pg_current_xact_id();
    perform rowq.internal_open_lanes(p_queue_id, p_lanes);

    -- Record the new positions of expiring messages for internal_expire. A queue that never had an
    -- expiring message has no lane -6, and skips the lookup.
    with pushed as (
        insert into rowq.ready as r (queue_id, lane, message_id, attempt, last_error)
        select p_queue_id, u.lane, u.message_id, u.attempt, u.last_error
        from unnest(p_lanes, p_message_ids, p_attempts, p_errors)
            with ordinality u (lane, message_id, attempt, last_error, position)
        order by u.position
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
    p_errors      text[]
)
returns void
language plpgsql
as $$
-- purpose   Delay messages until they are due; make those that are due by p_now ready.
-- locks     new delayed, ready and expiry rows
declare
    v_ready record;
begin
    insert into rowq.delayed (queue_id, lane, attempt, message_id, due_at, last_error)
    select p_queue_id, u.lane, u.attempt, u.message_id, u.due_at, u.last_error
    from unnest(p_lanes, p_message_ids, p_attempts, p_due_ats, p_errors)
        u (lane, message_id, attempt, due_at, last_error)
    where u.due_at > p_now;

    perform rowq.internal_record_expiry(p_queue_id, p_message_ids);

    select array_agg(u.lane) lanes, array_agg(u.message_id) ids, array_agg(u.attempt) attempts,
           array_agg(u.last_error) errors
    into v_ready
    from unnest(p_lanes, p_message_ids, p_attempts, p_due_ats, p_errors)
        u (lane, message_id, attempt, due_at, last_error)
    where u.due_at <= p_now;

    if v_ready.ids is not null then
        perform rowq.internal_push_ready(
            p_queue_id, v_ready.lanes, v_ready.ids, v_ready.attempts, v_ready.errors
        );
    end if;
end;
$$;
