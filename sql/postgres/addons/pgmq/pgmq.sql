-- Let an application of pgmq use rowq: create a schema pgmq, whose functions only call rowq's
-- routines. README.md in this folder lists the differences. The script needs psql and an installed
-- rowq, is one transaction, and can be run again. "drop schema pgmq cascade" removes it but no
-- message.
\set ON_ERROR_STOP on
\encoding UTF8
begin;
-- Do not use operators of other users in schema public.
set local search_path = pg_catalog, pg_temp;
set local standard_conforming_strings = on;
set local quote_all_identifiers = off;

do $$
begin
    -- As in preflight.sql: the database's owner can set the role of every session in it.
    if session_user <> current_user and exists (
        select 1
        from pg_roles r
        where r.rolname = session_user
          and r.rolsuper
    ) then
        raise exception 'RQ803 missing_privilege: superuser % acts as %', session_user, current_user
            using errcode = 'RQ803', hint = format(
                'Connect as %I, or remove the setting: alter database %I reset role;',
                current_user, current_database());
    end if;
    if to_regprocedure('rowq.version()') is null then
        raise exception 'RQ802 foreign_schema: rowq is not in this database'
            using errcode = 'RQ802', hint = 'Install it first: rowq migrate';
    end if;
    if exists (select 1 from pg_catalog.pg_extension e where e.extname = 'pgmq') then
        raise exception 'RQ802 foreign_schema: the extension pgmq is in this database'
            using errcode = 'RQ802', hint = 'Move its messages to another database, or drop it.';
    end if;
    if to_regnamespace('pgmq') is null then
        create schema pgmq;
        comment on schema pgmq is 'rowq''s shim for applications that call pgmq';
    elsif not exists (
        -- Another owner's objects there would run with the rights of rowq's owner.
        select 1
        from pg_catalog.pg_namespace n
        join pg_catalog.pg_namespace r on r.nspowner = n.nspowner
        where n.nspname = 'pgmq'
          and r.nspname = 'rowq'
          and pg_catalog.obj_description(n.oid, 'pg_namespace')
              = 'rowq''s shim for applications that call pgmq'
    ) then
        raise exception 'RQ802 foreign_schema: this database has a schema pgmq that is not the shim'
            using errcode = 'RQ802', hint = 'Move its messages to another database, or drop it.';
    end if;
end;
$$;

-- Check first: there is no "create or replace type", and a type's users must be kept.
do $$
begin
    if to_regtype('pgmq.message_record') is null then
        create type pgmq.message_record as (
            msg_id       bigint,
            read_ct      integer,
            enqueued_at  timestamp with time zone,
            last_read_at timestamp with time zone,
            vt           timestamp with time zone,
            message      jsonb,
            headers      jsonb
        );
        create type pgmq.queue_record as (
            queue_name     character varying,
            is_partitioned boolean,
            is_unlogged    boolean,
            created_at     timestamp with time zone
        );
        create type pgmq.metrics_result as (
            queue_name               text,
            queue_length             bigint,
            newest_msg_age_sec       integer,
            oldest_msg_age_sec       integer,
            total_messages           bigint,
            scrape_time              timestamp with time zone,
            queue_visible_length     bigint,
            default_partition_length bigint
        );
    end if;
end;
$$;

-- Helpers.

create or replace function pgmq.internal_refuse(p_what text)
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
-- purpose   Refuse a feature without an equivalent in rowq.
-- errors    RQ711
begin
    raise exception 'RQ711 invalid_argument: % is not in the shim', p_what
        using errcode = 'RQ711';
end;
$$;

create or replace function pgmq.internal_json(p_body text, p_body_binary bytea)
returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp
as $$
-- purpose   Return a body as JSON; another producer's non-JSON body as a JSON string.
begin
    return coalesce(p_body, to_jsonb(encode(p_body_binary, 'base64'))::text)::jsonb;
exception
    when data_exception or statement_too_complex then
        return to_jsonb(p_body);
end;
$$;

create or replace function pgmq.internal_hide(
    p_queue_name  text,
    p_claim_id    bigint,
    p_message_id  bigint,
    p_lease_until timestamp with time zone,
    p_until       timestamp with time zone
)
returns timestamp with time zone
language plpgsql set search_path = pg_catalog, pg_temp
as $$
-- purpose   Change a claimed message's delivery time; return it, or null without the claim.
-- locks     as extend_lease or retry_later
-- errors    RQ701 RQ711
declare
    v_seconds double precision := extract(epoch from p_until - clock_timestamp());
    v_until   timestamp with time zone;
begin
    -- A lease cannot become shorter or exceed a day: outside that range, release the message with a
    -- delay.
    if p_until >= p_lease_until and v_seconds between 0 and 86400 then
        begin
            select e.lease_until into v_until
            from rowq.extend_lease(
                p_queue_name, p_claim_id, greatest(ceil(v_seconds)::integer, 1)
            ) e;
        exception
            when sqlstate 'RQ721' then
                null; -- Its worker has finished it since it was looked up.
        end;
    else
        select r.due_at into v_until
        from rowq.retry_later(
            p_queue_name, p_claim_id, array[p_message_id], greatest(v_seconds, 0)
        ) r;
    end if;
    return v_until;
end;
$$;

create or replace function pgmq.internal_delete(p_queue_name text, p_message_id bigint)
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
-- purpose   Finish a message in any state; return whether this call finished it.
-- locks     as complete or cancel
-- errors    RQ701 RQ705 RQ711
declare
    v_found   record;
    v_outcome text;
begin
    for v_try in 1 .. 100 loop
        select g.state, g.claim_id into v_found
        from rowq.get_message(p_queue_name, p_message_id) g;
        if not found or v_found.state in ('completed', 'cancelled', 'expired') then
            return false;
        end if;

        if v_found.claim_id is not null then
            select c.outcome into v_outcome
            from rowq.complete(p_queue_name, v_found.claim_id, array[p_message_id]) c;
        else
            select c.outcome into v_outcome
            from rowq.cancel(p_queue_name, array[p_message_id]) c;
        end if;
        if v_outcome in ('completed', 'cancelled') then
            return true;
        end if;

        -- Another session has moved the message since or holds it.
        perform pg_sleep(0.01);
    end loop;
    raise exception 'RQ705 queue_busy: another transaction holds message %; try again', p_message_id
        using errcode = 'RQ705';
end;
$$;

-- Queues.

create or replace function pgmq.create(queue_name text)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Create a queue without a limit of attempts; keep an existing one.
-- locks     as create_queue
-- errors    RQ711
begin
    perform c.outcome
    from rowq.create_queue(
        queue_name, p_max_attempts => 0, p_max_body_length => 33554432
    ) c;
end;
$$;

create or replace function pgmq.create_unlogged(queue_name text)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Do the same as create: rowq has no unlogged queues.
-- locks     as create_queue
-- errors    RQ711
begin
    perform pgmq.create(queue_name);
end;
$$;

create or replace function pgmq.drop_queue(queue_name text)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Remove a queue and all its data; return whether it existed.
-- locks     as rowq.drop_queue
-- errors    RQ705 RQ711 RQ713
begin
    perform d.outcome from rowq.drop_queue(queue_name, true) d;
    return true;
exception
    when sqlstate 'RQ701' then
        raise notice 'pgmq queue `%` does not exist', queue_name;
        return false;
end;
$$;

create or replace function pgmq.drop_queue(queue_name text, partitioned boolean)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Do the same as drop_queue without partitioned, for older clients.
-- locks     as rowq.drop_queue
-- errors    RQ705 RQ711 RQ713
begin
    return pgmq.drop_queue(queue_name);
end;
$$;

create or replace function pgmq.purge_queue(queue_name text)
returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Delete all messages, including read ones; return their number.
-- locks     as rowq.purge_queue and complete
-- errors    RQ701 RQ711
declare
    v_removed bigint;
    v_more    bigint;
    v_last_id bigint := 0;
    v_claims  bigint[];
    v_size    integer := 1000;
begin
    select p.removed into v_removed
    from rowq.purge_queue(queue_name, true) p;

    loop
        v_claims := array(
            select l.claim_id
            from rowq.list_claims(queue_name, v_last_id, v_size) l
            order by l.claim_id
        );
        exit when v_claims = '{}';
        -- Each block with an exception is a subtransaction, so handle many claims in one.
        begin
            select count(*) into v_more
            from unnest(v_claims) u (claim_id)
            cross join lateral rowq.complete(queue_name, u.claim_id) c;
            v_removed := v_removed + v_more;
            v_last_id := v_claims[cardinality(v_claims)];
        exception
            -- A worker has finished one of them; the next iteration does not find it.
            when sqlstate 'RQ721' then
                v_size := greatest(v_size / 10, 1);
        end;
    end loop;
    return v_removed;
end;
$$;

create or replace function pgmq.list_queues()
returns setof pgmq.queue_record
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   List all queues of rowq by name, without their creation time.
begin
    return query
    select s.queue_name::character varying, false, false, null::timestamp with time zone
    from rowq.queue_stats(null, 1) s;
end;
$$;

create or replace function pgmq.metrics(queue_name text)
returns pgmq.metrics_result
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Return a queue's counts of messages and readable ones, and the oldest one's age.
-- errors    RQ701 RQ711
declare
    v_metrics pgmq.metrics_result;
begin
    select s.queue_name, s.ready + s.delayed + s.leased + s.dead + s.blocked,
           s.oldest_ready_seconds::integer, now(), s.ready
    into v_metrics.queue_name, v_metrics.queue_length, v_metrics.oldest_msg_age_sec,
         v_metrics.scrape_time, v_metrics.queue_visible_length
    from rowq.queue_stats(metrics.queue_name, 100000000) s;

    -- A read also finds messages due, or with an expired lease, since the last maintain.
    v_metrics.queue_visible_length := v_metrics.queue_visible_length + (
        select count(*)
        from rowq.list_delayed(metrics.queue_name, p_max_messages => 10000) d
        where d.due_at <= clock_timestamp()
    ) + (
        select coalesce(sum(l.message_count), 0)
        from rowq.list_claims(metrics.queue_name, p_max_claims => 10000) l
        where l.lease_until <= clock_timestamp()
    );
    return v_metrics;
end;
$$;

create or replace function pgmq.metrics_all()
returns setof pgmq.metrics_result
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Return the metrics of all queues.
declare
    v_queue_name text;
begin
    for v_queue_name in select s.queue_name from rowq.queue_stats(null, 1) s loop
        begin
            return next pgmq.metrics(v_queue_name);
        exception
            when sqlstate 'RQ701' then
                null; -- It has been dropped since it was listed.
        end;
    end loop;
end;
$$;

-- Sending.

create or replace function pgmq.send(
    queue_name text,
    msg        jsonb,
    headers    jsonb,
    delay      timestamp with time zone
)
returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Send a message that can be read after delay.
-- locks     as enqueue
-- errors    RQ701 RQ711
begin
    return query
    select e.message_id
    from rowq.enqueue(queue_name, msg, p_headers => headers, p_run_at => delay) e;
end;
$$;

create or replace function pgmq.send_batch(
    queue_name text,
    msgs       jsonb[],
    headers    jsonb[],
    delay      timestamp with time zone
)
returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Send messages that can be read after delay; on an error, none.
-- locks     as enqueue_batch
-- errors    RQ701 RQ711
begin
    if coalesce(cardinality(msgs), 0) = 0 then
        raise exception 'RQ711 invalid_argument: msgs cannot be null or empty'
            using errcode = 'RQ711';
    end if;
    if cardinality(headers) <> cardinality(msgs) then
        raise exception
            'RQ711 invalid_argument: headers array length (%) must match msgs array length (%)',
            cardinality(headers), cardinality(msgs)
            using errcode = 'RQ711';
    end if;

    -- An array can have several dimensions and another lower bound than 1.
    msgs := array(select unnest(msgs));
    if headers is not null then
        headers := array(select unnest(headers));
    end if;

    -- enqueue_batch takes at most 10,000 messages. A body that is not a string is stored as JSON
    -- text, so pass a JSON string as its text, too.
    return query
    select e.message_id
    from generate_series(0, (cardinality(msgs) - 1) / 10000) b (batch)
    cross join lateral (
        select jsonb_agg(
            jsonb_strip_nulls(
                jsonb_build_object('body', u.msg::text, 'run_at', delay)
            ) || case
                when u.header is null then '{}'::jsonb
                else jsonb_build_object('headers', u.header)
            end
            order by u.place
        ) as messages
        from unnest(
            msgs[b.batch * 10000 + 1 : (b.batch + 1) * 10000],
            headers[b.batch * 10000 + 1 : (b.batch + 1) * 10000]
        ) with ordinality u (msg, header, place)
    ) m
    cross join lateral rowq.enqueue_batch(queue_name, m.messages) e
    order by b.batch, e."position";
end;
$$;

-- Reading.

create or replace function pgmq.read(
    queue_name  text,
    vt          integer,
    qty         integer,
    conditional jsonb default '{}'
)
returns setof pgmq.message_record
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Lease up to qty messages, each with its own claim, for vt seconds.
-- locks     as dequeue_fast and reap
-- errors    RQ701 RQ711 RQ713
declare
    v_message pgmq.message_record;
    v_found   record;
    v_claims  bigint[] := '{}'::bigint[];
    v_ids     bigint[] := '{}'::bigint[];
    v_is_last boolean := false;
    v_ends_at timestamp with time zone := 'infinity';
begin
    if conditional <> '{}' then
        perform pgmq.internal_refuse('a condition');
    end if;
    if vt is null or qty is null then
        raise exception 'RQ711 invalid_argument: vt and qty must be given'
            using errcode = 'RQ711';
    end if;

    while cardinality(v_ids) < qty loop
        select d.claim_id, d.message_id, d.attempt, d.headers, d.body, d.body_binary,
               d.enqueued_at, d.lease_until
        into v_found
        from rowq.dequeue_fast(queue_name, 1, 'pgmq', least(greatest(vt, 1), 86400)) d;
        if not found then
            -- Reap expired leases, but none of this call's.
            exit when v_is_last or v_ends_at <= clock_timestamp();
            perform r.reaped
            from rowq.reap(queue_name, least(qty - cardinality(v_ids), 1000)) r;
            v_is_last := true;
            continue;
        end if;

        v_message.msg_id := v_found.message_id;
        v_message.read_ct := v_found.attempt;
        v_message.enqueued_at := v_found.enqueued_at;
        v_message.last_read_at := clock_timestamp();
        v_message.vt := case
            when vt between 1 and 86400 then v_found.lease_until
            else v_message.last_read_at + make_interval(secs => vt)
        end;
        v_message.message := pgmq.internal_json(v_found.body, v_found.body_binary);
        v_message.headers := v_found.headers;
        v_ends_at := least(v_ends_at, v_found.lease_until);
        v_claims := v_claims || v_found.claim_id;
        v_ids := v_ids || v_found.message_id;
        return next v_message;
    end loop;

    -- A lease lasts 1 second to 1 day. Release the messages only now, because this call would find
    -- them again.
    if vt not between 1 and 86400 then
        perform pgmq.internal_hide(
            read.queue_name, u.claim_id, u.message_id, 'infinity',
            clock_timestamp() + make_interval(secs => vt)
        )
        from unnest(v_claims, v_ids) u (claim_id, message_id);
    end if;
end;
$$;

create or replace function pgmq.read_with_poll(
    queue_name       text,
    vt               integer,
    qty              integer,
    max_poll_seconds integer default 5,
    poll_interval_ms integer default 100,
    conditional      jsonb default '{}'
)
returns setof pgmq.message_record
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Do the same as read, repeatedly, until a message arrives or the time is over.
-- locks     as dequeue_fast and reap
-- errors    RQ701 RQ711 RQ713
declare
    v_stop_at timestamp with time zone :=
        clock_timestamp() + make_interval(secs => max_poll_seconds);
begin
    while clock_timestamp() < v_stop_at loop
        return query
        select r.msg_id, r.read_ct, r.enqueued_at, r.last_read_at, r.vt, r.message, r.headers
        from pgmq.read(queue_name, vt, qty, conditional) r;
        exit when found;
        perform pg_sleep(poll_interval_ms / 1000.0);
    end loop;
end;
$$;

create or replace function pgmq.pop(queue_name text, qty integer default 1)
returns setof pgmq.message_record
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Lease up to qty messages and finish them immediately.
-- locks     as dequeue_fast, complete and reap
-- errors    RQ701 RQ711 RQ713
declare
    v_message  pgmq.message_record;
    v_found    record;
    v_left     integer := qty;
    v_claim_id bigint;
    v_is_last  boolean := false;
begin
    if qty is null then
        raise exception 'RQ711 invalid_argument: qty must be given'
            using errcode = 'RQ711';
    end if;

    while v_left > 0 loop
        v_claim_id := null;
        for v_found in
            select d.claim_id, d.message_id, d.attempt, d.headers, d.body, d.body_binary,
                   d.enqueued_at
            from rowq.dequeue_fast(queue_name, least(v_left, 1000), 'pgmq') d
        loop
            v_message.msg_id := v_found.message_id;
            v_message.read_ct := v_found.attempt - 1;
            v_message.enqueued_at := v_found.enqueued_at;
            v_message.vt := v_found.enqueued_at;
            v_message.message := pgmq.internal_json(v_found.body, v_found.body_binary);
            v_message.headers := v_found.headers;
            v_claim_id := v_found.claim_id;
            v_left := v_left - 1;
            return next v_message;
        end loop;
        if v_claim_id is null then
            exit when v_is_last;
            perform r.reaped from rowq.reap(queue_name, least(v_left, 1000)) r;
            v_is_last := true;
            continue;
        end if;
        perform c.outcome from rowq.complete(queue_name, v_claim_id) c;
    end loop;
end;
$$;

create or replace function pgmq.set_vt(
    queue_name text,
    msg_ids    bigint[],
    vt         timestamp with time zone
)
returns setof pgmq.message_record
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Change when read messages are delivered again; return the found ones.
-- locks     as extend_lease or retry_later
-- errors    RQ701 RQ711
declare
    v_message pgmq.message_record;
    v_found   record;
begin
    if vt is null then
        raise exception 'RQ711 invalid_argument: vt is missing'
            using errcode = 'RQ711';
    end if;
    for v_found in
        select g.message_id, g.attempt, g.headers, g.body, g.body_binary, g.enqueued_at,
               g.claim_id, g.lease_until
        from unnest(msg_ids) u (message_id)
        cross join lateral rowq.get_message(set_vt.queue_name, u.message_id) g
        where g.finished_at is null
    loop
        if v_found.claim_id is null then
            perform pgmq.internal_refuse(
                'set_vt of message ' || v_found.message_id || ', which is not leased,'
            );
        end if;
        v_message.msg_id := v_found.message_id;
        v_message.read_ct := v_found.attempt;
        v_message.enqueued_at := v_found.enqueued_at;
        v_message.message := pgmq.internal_json(v_found.body, v_found.body_binary);
        v_message.headers := v_found.headers;
        v_message.vt := pgmq.internal_hide(
            queue_name, v_found.claim_id, v_found.message_id, v_found.lease_until, vt
        );
        if v_message.vt is not null then
            return next v_message;
        end if;
    end loop;
end;
$$;

-- Shorter forms of send, send_batch and set_vt.

do $$
declare
    v_form text[];
begin
    foreach v_form slice 1 in array array[
        array[
            'send(queue_name text, msg jsonb) returns setof bigint',
            'select e.message_id from rowq.enqueue(queue_name, msg) e'
        ],
        array[
            'send(queue_name text, msg jsonb, headers jsonb) returns setof bigint',
            'select e.message_id from rowq.enqueue(queue_name, msg, p_headers => headers) e'
        ],
        array[
            'send(queue_name text, msg jsonb, delay integer) returns setof bigint',
            'select s.msg_id from pgmq.send(queue_name, msg, null::jsonb, clock_timestamp() + '
                'make_interval(secs => delay)) s (msg_id)'
        ],
        array[
            'send(queue_name text, msg jsonb, delay timestamptz) returns setof bigint',
            'select s.msg_id from pgmq.send(queue_name, msg, null::jsonb, delay) s (msg_id)'
        ],
        array[
            'send(queue_name text, msg jsonb, headers jsonb, delay integer) returns setof bigint',
            'select s.msg_id from pgmq.send(queue_name, msg, headers, clock_timestamp() + '
                'make_interval(secs => delay)) s (msg_id)'
        ],
        array[
            'send_batch(queue_name text, msgs jsonb[]) returns setof bigint',
            'select s.msg_id from pgmq.send_batch(queue_name, msgs, null::jsonb[], '
                'null::timestamptz) s (msg_id)'
        ],
        array[
            'send_batch(queue_name text, msgs jsonb[], headers jsonb[]) returns setof bigint',
            'select s.msg_id from pgmq.send_batch(queue_name, msgs, headers, null::timestamptz) s '
                '(msg_id)'
        ],
        array[
            'send_batch(queue_name text, msgs jsonb[], delay integer) returns setof bigint',
            'select s.msg_id from pgmq.send_batch(queue_name, msgs, null::jsonb[], '
                'clock_timestamp() + make_interval(secs => delay)) s (msg_id)'
        ],
        array[
            'send_batch(queue_name text, msgs jsonb[], delay timestamptz) returns setof bigint',
            'select s.msg_id from pgmq.send_batch(queue_name, msgs, null::jsonb[], delay) s '
                '(msg_id)'
        ],
        array[
            'send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay integer) returns '
                'setof bigint',
            'select s.msg_id from pgmq.send_batch(queue_name, msgs, headers, clock_timestamp() + '
                'make_interval(secs => delay)) s (msg_id)'
        ],
        array[
            'set_vt(queue_name text, msg_ids bigint[], vt integer) returns setof '
                'pgmq.message_record',
            'select s.msg_id, s.read_ct, s.enqueued_at, s.last_read_at, s.vt, s.message, '
                's.headers from pgmq.set_vt(queue_name, msg_ids, clock_timestamp() + '
                'make_interval(secs => vt)) s'
        ],
        array[
            'set_vt(queue_name text, msg_id bigint, vt timestamptz) returns setof '
                'pgmq.message_record',
            'select s.msg_id, s.read_ct, s.enqueued_at, s.last_read_at, s.vt, s.message, '
                's.headers from pgmq.set_vt(queue_name, array[msg_id], vt) s'
        ],
        array[
            'set_vt(queue_name text, msg_id bigint, vt integer) returns setof pgmq.message_record',
            'select s.msg_id, s.read_ct, s.enqueued_at, s.last_read_at, s.vt, s.message, '
                's.headers from pgmq.set_vt(queue_name, array[msg_id], clock_timestamp() + '
                'make_interval(secs => vt)) s'
        ]
    ] loop
        execute format(
            'create or replace function pgmq.%s language plpgsql security definer '
            'set search_path = pg_catalog, pg_temp as %L',
            v_form[1], format('begin return query %s; end', v_form[2]));
    end loop;
end;
$$;

-- Finishing.

create or replace function pgmq.delete(queue_name text, msg_id bigint)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Finish a message, read or not; return whether it existed.
-- locks     as complete or cancel
-- errors    RQ701 RQ705 RQ711
begin
    return pgmq.internal_delete(queue_name, msg_id);
end;
$$;

create or replace function pgmq.delete(queue_name text, msg_ids bigint[])
returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Finish messages, read or not; return the ids of the existing ones.
-- locks     as complete or cancel, in the order of the ids
-- errors    RQ701 RQ705 RQ711
declare
    v_message_id bigint;
begin
    for v_message_id in select u.message_id from unnest(msg_ids) u (message_id) order by 1 loop
        if pgmq.internal_delete(queue_name, v_message_id) then
            return next v_message_id;
        end if;
    end loop;
end;
$$;

create or replace function pgmq.archive(queue_name text, msg_ids bigint[])
returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Finish messages of a queue with an archive; return the ids of the existing ones.
-- locks     as complete or cancel
-- errors    RQ701 RQ705 RQ711
begin
    if exists (
        select 1
        from rowq.queue_stats(archive.queue_name, 1) s
        where s.archive_days = 0
    ) then
        raise exception 'RQ711 invalid_argument: queue % keeps no archive', queue_name
            using errcode = 'RQ711',
                  hint = 'select rowq.alter_queue(queue_name, p_archive_days => 30);';
    end if;
    return query
    select d.message_id
    from pgmq.delete(queue_name, msg_ids) d (message_id);
end;
$$;

create or replace function pgmq.archive(queue_name text, msg_id bigint)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
-- purpose   Finish a message of a queue with an archive; return whether it existed.
-- locks     as complete or cancel
-- errors    RQ701 RQ705 RQ711
begin
    return exists (
        select 1
        from pgmq.archive(archive.queue_name, array[archive.msg_id]) d
    );
end;
$$;

-- Features without an equivalent in rowq: these functions exist to explain the failure.

do $$
declare
    v_head text;
begin
    foreach v_head in array array[
        'create_partitioned(queue_name text, partition_interval text default ''10000'', '
            'retention_interval text default ''100000'', premake integer default 4) returns void',
        'create_non_partitioned(queue_name text) returns void',
        'convert_archive_partitioned(table_name text, partition_interval text default '
            '''10000'', retention_interval text default ''100000'', leading_partition integer '
            'default 10) returns void',
        'detach_archive(queue_name text) returns void',
        'validate_queue_name(queue_name text) returns void',
        'create_fifo_index(queue_name text) returns void',
        'create_fifo_indexes_all() returns void',
        'read_grouped(queue_name text, vt integer, qty integer) returns setof '
            'pgmq.message_record',
        'read_grouped_with_poll(queue_name text, vt integer, qty integer, max_poll_seconds '
            'integer default 5, poll_interval_ms integer default 100) returns setof '
            'pgmq.message_record',
        'read_grouped_rr(queue_name text, vt integer, qty integer) returns setof '
            'pgmq.message_record',
        'read_grouped_rr_with_poll(queue_name text, vt integer, qty integer, max_poll_seconds '
            'integer default 5, poll_interval_ms integer default 100) returns setof '
            'pgmq.message_record',
        'read_grouped_head(queue_name text, vt integer, qty integer) returns setof '
            'pgmq.message_record',
        'read_grouped_head_with_poll(queue_name text, vt integer, qty integer, '
            'max_poll_seconds integer default 5, poll_interval_ms integer default 100) returns '
            'setof pgmq.message_record',
        'enable_notify_insert(queue_name text, throttle_interval_ms integer default 250) '
            'returns void',
        'disable_notify_insert(queue_name text) returns void',
        'update_notify_insert(queue_name text, throttle_interval_ms integer) returns void',
        'list_notify_insert_throttles() returns table (queue_name text, throttle_interval_ms '
            'integer, last_notified_at timestamptz)',
        'validate_routing_key(routing_key text) returns boolean',
        'validate_topic_pattern(pattern text) returns boolean',
        'bind_topic(pattern text, queue_name text) returns void',
        'unbind_topic(pattern text, queue_name text) returns boolean',
        'test_routing(routing_key text) returns table (pattern text, queue_name text, '
            'compiled_regex text)',
        'list_topic_bindings() returns table (pattern text, queue_name text, bound_at '
            'timestamptz, compiled_regex text)',
        'send_topic(routing_key text, msg jsonb, headers jsonb, delay integer) returns '
            'integer',
        'send_topic(routing_key text, msg jsonb) returns integer',
        'send_topic(routing_key text, msg jsonb, delay integer) returns integer',
        'send_batch_topic(routing_key text, msgs jsonb[], headers jsonb[], delay timestamptz) '
            'returns table (queue_name text, msg_id bigint)',
        'send_batch_topic(routing_key text, msgs jsonb[]) returns table (queue_name text, '
            'msg_id bigint)',
        'send_batch_topic(routing_key text, msgs jsonb[], headers jsonb[]) returns table '
            '(queue_name text, msg_id bigint)',
        'send_batch_topic(routing_key text, msgs jsonb[], delay integer) returns table '
            '(queue_name text, msg_id bigint)',
        'send_batch_topic(routing_key text, msgs jsonb[], delay timestamptz) returns table '
            '(queue_name text, msg_id bigint)',
        'send_batch_topic(routing_key text, msgs jsonb[], headers jsonb[], delay integer) '
            'returns table (queue_name text, msg_id bigint)'
    ] loop
        execute format(
            'create or replace function pgmq.%s language plpgsql '
            'set search_path = pg_catalog, pg_temp as %L',
            v_head,
            format('begin perform pgmq.internal_refuse(%L); end', split_part(v_head, '(', 1)));
    end loop;
end;
$$;

create or replace function pgmq.list_topic_bindings(queue_name text)
returns table (
    pattern        text,
    queue_name     text,
    bound_at       timestamp with time zone,
    compiled_regex text
)
language sql
set search_path = pg_catalog, pg_temp
as $$
-- purpose   Refuse: not in the shim.
-- errors    RQ711
-- differs   plpgsql allows no column with a parameter's name
select null::text, null::text, null::timestamp with time zone, null::text
from pgmq.internal_refuse('list_topic_bindings');
$$;

-- The owner of schema rowq owns everything, and the functions run with its rights. Each rowq role
-- may execute the functions like its routines, and PUBLIC none. No role may use the types, because
-- a table with one would be lost with the schema; calls need no right on them. Skip missing roles.
do $$
declare
    v_change text;
begin
    for v_change in
        with object as (
            select 'schema' as kind, 'pgmq' as name, 'usage' as privilege_type, '' as stem
            union all
            select 'type', t.oid::pg_catalog.regtype::text, 'usage', ''
            from pg_catalog.pg_type t
            where t.typnamespace = 'pgmq'::pg_catalog.regnamespace
              and t.typtype = 'c'
            union all
            select 'function', p.oid::pg_catalog.regprocedure::text, 'execute', p.proname
            from pg_catalog.pg_proc p
            where p.pronamespace = 'pgmq'::pg_catalog.regnamespace
        ),
        wanted (role_name, stems) as (
            values
                ('rowq_producer', array['send', 'send_batch']),
                ('rowq_consumer', array[
                    'read', 'read_with_poll', 'pop', 'set_vt', 'delete', 'archive', 'metrics',
                    'metrics_all'
                ]),
                ('rowq_monitor', array['list_queues', 'metrics', 'metrics_all']),
                ('rowq_admin', array[
                    'send', 'send_batch', 'read', 'read_with_poll', 'pop', 'set_vt', 'delete',
                    'archive', 'list_queues', 'metrics', 'metrics_all', 'create',
                    'create_unlogged', 'drop_queue', 'purge_queue'
                ])
        ),
        called as (
            select array_agg(u.stem) || array[
                'internal_json', 'internal_hide', 'internal_delete'
            ]::text[] as stems
            from wanted w
            cross join unnest(w.stems) u (stem)
        )
        select x.change
        from (
            select 1, pg_catalog.format(
                'alter %s %s owner to %I', o.kind, o.name, pg_catalog.pg_get_userbyid(n.nspowner)
            )
            from object o
            join pg_catalog.pg_namespace n on n.nspname = 'rowq'
            union all
            select 2, pg_catalog.format('revoke all on %s %s from public', o.kind, o.name)
            from object o
            union all
            select 3, pg_catalog.format(
                'grant %s on %s %s to %I', o.privilege_type, o.kind, o.name, w.role_name
            )
            from object o
            cross join called c
            join wanted w on o.kind = 'schema'
                or o.kind = 'function' and (o.stem = any (w.stems) or o.stem <> all (c.stems))
            join pg_catalog.pg_roles r on r.rolname = w.role_name
        ) x (step, change)
        order by x.step, x.change
    loop
        execute v_change;
    end loop;
end;
$$;

commit;
