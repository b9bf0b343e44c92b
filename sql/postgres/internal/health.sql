-- Health: what health measures.
--
-- Each check returns its name, the queue, a value, and the thresholds for warning and critical.
-- health starts at the floor of each table. Checks of the server name the session or transaction
-- that an operator has to end.
--
--   maintain, move_floor, busy_queues -> newest_number
--   health -> health_limits, health_server
--   health -> health_queues -> oldest_ready, stored_numbers, health_sequences
--   after_failover, move_floor -> advance_numbers -> stored_numbers
--
-- Writes floor. Only reads blocked, claim, dead, delayed, expiry, finished, limit_lock, history,
-- message, meta, queue, ready, deferred, result, schedule, successor.

create or replace function rowq.internal_newest_number(p_lane smallint)
returns bigint
language plpgsql
as $$
-- purpose   Return the newest number given to rows of this kind of lane.
-- differs   only engines whose readers scan dead rows need it
begin
    return coalesce(
        case
            when p_lane >= 0 then pg_sequence_last_value('rowq.message_seq')
            when p_lane in (-1 /* claim */, -3 /* finished */)
                then pg_sequence_last_value('rowq.claim_seq')
            -- The number is a time. A writer reads the clock after it has its transaction id, so
            -- its row is not earlier.
            else extract(epoch from clock_timestamp()) * 1000000
        end,
        0
    );
end;
$$;

create or replace function rowq.internal_oldest_ready(p_queue_id integer)
returns timestamp with time zone
language plpgsql
as $$
-- purpose   Return when the oldest of the first ready messages of all lanes was enqueued.
declare
    v_lane   smallint := -1;
    v_safe   bigint;
    v_head   timestamp with time zone;
    v_oldest timestamp with time zone;
begin
    loop
        select f.lane, f.safe_seq into v_lane, v_safe
        from rowq.floor f
        where f.queue_id = p_queue_id
          and f.lane > v_lane
        order by f.queue_id, f.lane, f.generation
        limit 1;
        exit when not found;

        select m.enqueued_at into v_head
        from rowq.ready r
        join rowq.message m on m.queue_id = r.queue_id and m.message_id = r.message_id
        where r.queue_id = p_queue_id
          and r.lane = v_lane
          and r.seq >= v_safe
        order by r.queue_id, r.lane, r.seq
        limit 1;
        v_oldest := least(v_oldest, v_head);
    end loop;
    return v_oldest;
end;
$$;

create or replace function rowq.internal_health_limits()
returns table (
    check_name text,
    queue_name text,
    value      double precision,
    warning    double precision,
    critical   double precision,
    detail     text
)
language plpgsql
as $$
-- purpose   Return the check of transactions that block dequeues of limited queues.
#variable_conflict use_column
declare
    v_queue  record;
    v_holder xid;
begin
    for v_queue in
        select q.queue_id, q.queue_name
        from rowq.queue q
        where q.max_leased > 0
           or q.rate_limit > 0
    loop
        -- No view lists row locks, but the row holds the id of the locking transaction.
        select g.xmax into v_holder
        from rowq.limit_lock g
        where g.queue_id = v_queue.queue_id;
        return query
        select 'held_limits', v_queue.queue_name,
               coalesce(max(extract(epoch from clock_timestamp() - a.xact_start)), 0)
                   ::double precision,
               30::double precision, 300::double precision,
               coalesce(
                   max(format(
                       'seconds the transaction of session %s of %s (%s) has held the limit lock; '
                       'no other session can dequeue from this queue until it ends',
                       a.pid, a.usename, a.state
                   )),
                   'no transaction blocks dequeues of this queue'
               )
        from pg_catalog.pg_locks l
        join pg_catalog.pg_stat_activity a on a.pid = l.pid
        where l.locktype = 'transactionid'
          and l.transactionid = v_holder
          and l.mode = 'ExclusiveLock'
          and l.granted
          and a.pid <> pg_backend_pid();
    end loop;
end;
$$;

create or replace function rowq.internal_health_queues()
returns table (
    check_name text,
    queue_name text,
    value      double precision,
    warning    double precision,
    critical   double precision,
    detail     text
)
language plpgsql
as $$
-- purpose   Return the checks of all queues and of the sequences.
#variable_conflict use_column
declare
    v_queue       record;
    v_from        record;
    v_seen        record;
    v_oldest      timestamp with time zone;
    v_now         timestamp with time zone;
    v_waiting     bigint;
    v_deferred_at timestamp with time zone;
    v_expires_at  timestamp with time zone;
    v_newest      bigint := 0;
    v_claim       bigint := 0;
    v_queue_id    integer := 0;
begin
    for v_queue in
        select q.queue_id, q.queue_name, q.paused_at is not null as is_paused, q.result_seconds,
               q.history_days
        from rowq.queue q
    loop
        v_oldest := rowq.internal_oldest_ready(v_queue.queue_id);

        -- Read the safe floors before the rows, as internal_read_safe_floor does, but in one
        -- statement.
        select max(f.safe_seq) filter (where l.lane = -1 /* claim */) as claims,
               max(f.safe_seq) filter (where l.lane = -2 /* delayed */) as delayed,
               max(f.safe_seq) filter (where l.lane = -4 /* deferred */) as deferred,
               max(f.safe_seq) filter (where l.lane = -7 /* result */) as results,
               max(f.safe_seq) filter (where l.lane = -6 /* expiry */) as expiring,
               max(f.safe_seq) filter (where l.lane = -8 /* history */) as history
        into v_from
        from unnest('{-1,-2,-4,-6,-7,-8}'::smallint[]) l (lane)
        cross join lateral (
            select x.safe_seq
            from rowq.floor x
            where x.queue_id = v_queue.queue_id
              and x.lane = l.lane
            order by x.queue_id, x.lane, x.generation
            limit 1
        ) f;
        v_now := clock_timestamp();

        -- One statement reads only rows of this queue.
        select (
                   select count(*)
                   from (
                       select
                       from rowq.dead d
                       where d.queue_id = v_queue.queue_id
                       limit 1000
                   ) x
               ) as dead,
               (
                   select d.due_at
                   from rowq.delayed d
                   where d.queue_id = v_queue.queue_id
                     and d.due_at >= rowq.internal_from_microseconds(coalesce(v_from.delayed, 0))
                     and d.due_at <= v_now
                   order by d.queue_id, d.due_at
                   limit 1
               ) as due_at,
               (
                   select min(k.lease_until) filter (where k.lease_until <= v_now)
                   from rowq.claim k
                   where k.queue_id = v_queue.queue_id
                     and k.claim_id >= coalesce(v_from.claims, 0)
               ) as lease_until,
               (
                   select r.finished_at
                   from rowq.result r
                   where r.queue_id = v_queue.queue_id
                     and r.finished_at
                         >= rowq.internal_from_microseconds(coalesce(v_from.results, 0))
                   order by r.queue_id, r.finished_at
                   limit 1
               ) as finished_at,
               (
                   select h.ended_at
                   from rowq.history h
                   where h.queue_id = v_queue.queue_id
                     and h.ended_at >= rowq.internal_from_microseconds(coalesce(v_from.history, 0))
                   order by h.queue_id, h.ended_at
                   limit 1
               ) as ended_at,
               s.next_run_at, s.failed
        into v_seen
        from (
            select min(x.next_run_at) filter (where x.next_run_at <= v_now) as next_run_at,
                   count(x.last_error) as failed
            from rowq.schedule x
            where x.queue_id = v_queue.queue_id
        ) s;

        select greatest(v_newest, n.o_message_id), greatest(v_claim, n.o_claim_id)
        into v_newest, v_claim
        from rowq.internal_stored_numbers(v_queue.queue_id) n;
        v_queue_id := greatest(v_queue_id, v_queue.queue_id);

        -- These lanes exist only if the queue has had deferred work or messages with expiry.
        v_waiting := 0;
        v_deferred_at := null;
        v_expires_at := null;
        if v_from.deferred is not null or v_from.expiring is not null then
            select (
                       select count(*)
                       from (
                           select
                           from (
                               select d.message_id
                               from rowq.dead d
                               where d.queue_id = v_queue.queue_id
                               order by d.queue_id desc, d.message_id desc
                               limit 10000
                           ) d
                           cross join lateral (
                               select
                               from rowq.successor x
                               join rowq.blocked b
                                   on b.queue_id = x.queue_id and b.message_id = x.message_id
                               where x.queue_id = v_queue.queue_id
                                 and x.predecessor_id = d.message_id
                               limit 1000
                           ) w
                           limit 1000
                       ) x
                   ),
                   (
                       select r.due_at
                       from rowq.deferred r
                       where r.queue_id = v_queue.queue_id
                         and r.due_at >= rowq.internal_from_microseconds(
                             coalesce(v_from.deferred, 0)
                         )
                         and r.due_at <= v_now
                       order by r.queue_id, r.due_at
                       limit 1
                   ),
                   (
                       select e.expires_at
                       from rowq.expiry e
                       where e.queue_id = v_queue.queue_id
                         and e.expires_at
                             >= rowq.internal_from_microseconds(coalesce(v_from.expiring, 0))
                         and e.expires_at <= v_now
                       order by e.queue_id, e.expires_at
                       limit 1
                   )
            into v_waiting, v_deferred_at, v_expires_at;
        end if;

        return query
        select c.check_name, v_queue.queue_name, c.value::double precision, c.warning, c.critical,
               c.detail
        from (
            values
                (
                    'oldest_ready', coalesce(extract(epoch from v_now - v_oldest), 0),
                    300::double precision, 3600::double precision,
                    'seconds the oldest ready message has waited'
                    || case when v_queue.is_paused then '; the queue is paused' else '' end
                ),
                (
                    'dead_messages', v_seen.dead, 1, 1000,
                    'dead messages, counted up to 1000; see list_dead and reset'
                ),
                (
                    'overdue_delayed', coalesce(extract(epoch from v_now - v_seen.due_at), 0),
                    30, 300,
                    'seconds the oldest due message has waited to be promoted; '
                    'call maintain every second'
                ),
                (
                    'expired_leases', coalesce(extract(epoch from v_now - v_seen.lease_until), 0),
                    30, 300,
                    'seconds the oldest expired lease has waited to be reaped; '
                    'call maintain every second'
                ),
                (
                    'waits_for_dead', v_waiting, 1, 1000,
                    'messages blocked by the newest 10000 dead messages, counted up to 1000; '
                    'reset or cancel the dead ones'
                ),
                (
                    'overdue_groups', coalesce(extract(epoch from v_now - v_deferred_at), 0),
                    30, 300,
                    'seconds deferred work has waited for a transaction to end or for maintain'
                ),
                (
                    'overdue_expiries', coalesce(extract(epoch from v_now - v_expires_at), 0),
                    30, 300,
                    'seconds an expired message has waited for maintain or for the session that '
                    'holds it'
                ),
                (
                    'overdue_results',
                    greatest(
                        coalesce(extract(epoch from v_now - v_seen.finished_at), 0)
                        - v_queue.result_seconds,
                        0
                    ),
                    300, 3600,
                    'seconds the oldest result has been kept beyond result_seconds; '
                    'call maintain every second'
                ),
                (
                    'overdue_history',
                    greatest(
                        coalesce(extract(epoch from v_now - v_seen.ended_at), 0)
                        - v_queue.history_days * 86400::bigint,
                        0
                    ),
                    3600, 86400,
                    'seconds the oldest attempt has been kept beyond history_days; '
                    'call maintain every second'
                ),
                (
                    'overdue_schedules',
                    coalesce(extract(epoch from v_now - v_seen.next_run_at), 0), 30, 300,
                    'seconds the oldest due schedule has waited; call maintain every second, or '
                    'end the transaction that has locked the schedule'
                ),
                (
                    'failed_schedules', v_seen.failed, 1, 1000,
                    'schedules whose last tick enqueued no message; see list_schedules'
                )
        ) c (check_name, value, warning, critical, detail);
    end loop;

    -- Read the sequences after the rows, so that they are not older.
    return query
    select s.check_name, s.queue_name, s.value, s.warning, s.critical, s.detail
    from rowq.internal_health_sequences(v_newest, v_claim, v_queue_id) s;
end;
$$;

create or replace function rowq.internal_health_sequences(
    p_message_id bigint,
    p_claim_id   bigint,
    p_queue_id   integer
)
returns table (
    check_name text,
    queue_name text,
    value      double precision,
    warning    double precision,
    critical   double precision,
    detail     text
)
language plpgsql
as $$
-- purpose   Return a check per sequence: is it behind the newest number stored?
#variable_conflict use_column
begin
    return query
    select 'sequence_behind', null::text, greatest(s.newest - s.last, 0)::double precision,
           1::double precision, 1::double precision,
           case
               when s.newest > s.last
                   then s.name || ' numbers would repeat numbers in use; call after_failover '
                       '(rowq after-failover)'
               else s.name || ' numbers are ahead of those stored'
           end
    from (
        select 'message' as name, p_message_id as newest,
               m.last_value - (not m.is_called)::integer as last
        from rowq.message_seq m
        union all
        select 'claim', p_claim_id, c.last_value - (not c.is_called)::integer
        from rowq.claim_seq c
        union all
        select 'queue', p_queue_id, q.last_value - (not q.is_called)::integer
        from rowq.queue_queue_id_seq q
    ) s;
end;
$$;

create or replace function rowq.internal_stored_numbers(
    p_queue_id   integer,
    out o_message_id bigint,
    out o_claim_id   bigint
)
language plpgsql
as $$
-- purpose   Return the newest message and claim numbers that tables and floors of a queue show.
declare
    v_from record;
begin
    -- Read the floors before the rows: safe floors, and numbers that were given out by then.
    select max(f.given) filter (where l.lane >= 0) as messages,
           max(f.given) filter (where l.lane in (-1 /* claim */, -3 /* finished */)) as claims,
           coalesce(max(f.safe_seq) filter (where l.lane = -1 /* claim */), 0) as claim,
           coalesce(max(f.safe_seq) filter (where l.lane = -3 /* finished */), 0) as finished,
           coalesce(max(f.safe_seq) filter (where l.lane = -7 /* result */), 0) as result,
           coalesce(max(f.safe_seq) filter (where l.lane = -8 /* history */), 0) as history
    into v_from
    from generate_series(-8, 19) l (lane)
    cross join lateral (
        select x.safe_seq, greatest(x.start_seq - 1, x.pending_seq) as given
        from rowq.floor x
        where x.queue_id = p_queue_id
          and x.lane = l.lane::smallint
        order by x.queue_id, x.lane, x.generation
        limit 1
    ) f;

    select greatest(v_from.messages, m.message_id, r.message_id, h.message_id, 0),
           greatest(v_from.claims, c.claim_id, f.finish_id, h.claim_id, 0)
    into o_message_id, o_claim_id
    from (select) one
    left join lateral (
        select m.message_id
        from rowq.message m
        where m.queue_id = p_queue_id
        order by m.queue_id desc, m.message_id desc
        limit 1
    ) m on true
    left join lateral (
        select k.claim_id
        from rowq.claim k
        where k.queue_id = p_queue_id
          and k.claim_id >= v_from.claim
        order by k.queue_id desc, k.claim_id desc
        limit 1
    ) c on true
    left join lateral (
        select e.finish_id
        from rowq.finished e
        where e.queue_id = p_queue_id
          and e.finish_id >= v_from.finished
        order by e.queue_id desc, e.finish_id desc
        limit 1
    ) f on true
    left join lateral (
        select r.message_id
        from rowq.result r
        where r.queue_id = p_queue_id
          and r.finished_at >= rowq.internal_from_microseconds(v_from.result)
        order by r.queue_id desc, r.finished_at desc
        limit 1
    ) r on true
    left join lateral (
        select h.message_id, h.claim_id
        from rowq.history h
        where h.queue_id = p_queue_id
          and h.ended_at >= rowq.internal_from_microseconds(v_from.history)
        order by h.queue_id desc, h.ended_at desc
        limit 1
    ) h on true;
end;
$$;

create or replace function rowq.internal_advance_numbers(p_may_wait boolean)
returns table (name text, was bigint, is_now bigint)
language plpgsql
as $$
-- purpose   Move every sequence far beyond the numbers that tables and floors show.
-- locks     the row channel of meta, so that two calls do not give out the same numbers; without
--           p_may_wait, it returns no row if that is locked
#variable_conflict use_column
declare
    -- More than a server gives out between two states of its replica.
    c_jump        constant bigint := 1000000000;
    c_queues      constant integer := 1000;
    -- Their floors are numbers: finished, claim, and the lanes of messages.
    c_lanes       constant smallint[] :=
        '{-3,-1,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19}'::smallint[];
    v_queue_id    integer;
    v_last_queue  integer := 0;
    v_message_id  bigint := 0;
    v_claim_id    bigint := 0;
    v_messages    bigint;
    v_claims      bigint;
    v_queues      bigint;
begin
    if p_may_wait then
        perform m.name from rowq.meta m where m.name = 'channel' for update;
    else
        perform m.name from rowq.meta m where m.name = 'channel' for update skip locked;
        if not found then
            return;
        end if;
    end if;

    v_messages := coalesce(pg_sequence_last_value('rowq.message_seq'), 0);
    v_claims := coalesce(pg_sequence_last_value('rowq.claim_seq'), 0);
    v_queues := coalesce(pg_sequence_last_value('rowq.queue_queue_id_seq'), 0);
    for v_queue_id in select q.queue_id from rowq.queue q loop
        v_last_queue := greatest(v_last_queue, v_queue_id);
        select greatest(v_message_id, n.o_message_id), greatest(v_claim_id, n.o_claim_id)
        into v_message_id, v_claim_id
        from rowq.internal_stored_numbers(v_queue_id) n;
        -- Messages may have got numbers below the floor already: start at 0, as move_floor does.
        insert into rowq.floor (
            queue_id, lane, generation, start_seq, safe_seq, pending_seq, pending_xid, rescan_at,
            sweep_at
        )
        select v_queue_id, f.lane,
               least(f.generation, 0) - 5000000000 - (random() * 1000000)::bigint,
               0, 0, 0, '0', clock_timestamp(), clock_timestamp()
        from unnest(c_lanes) l (lane)
        cross join lateral (
            select x.lane, x.generation, x.start_seq, x.pending_seq
            from rowq.floor x
            where x.queue_id = v_queue_id
              and x.lane = l.lane
            order by x.queue_id, x.lane, x.generation
            limit 1
        ) f
        where greatest(f.start_seq - 1, f.pending_seq)
              > case when l.lane < 0 then v_claims else v_messages end
        on conflict do nothing;
    end loop;

    return query
    select 'claim', v_claims,
           setval('rowq.claim_seq', greatest(v_claims, v_claim_id) + c_jump);
    return query
    select 'message', v_messages,
           setval('rowq.message_seq', greatest(v_messages, v_message_id) + c_jump);
    return query
    select 'queue', v_queues,
           setval('rowq.queue_queue_id_seq', greatest(v_queues, v_last_queue) + c_queues);
end;
$$;

create or replace function rowq.internal_health_server()
returns table (
    check_name text,
    queue_name text,
    value      double precision,
    warning    double precision,
    critical   double precision,
    detail     text
)
language plpgsql
as $$
-- purpose   Return the checks that concern the whole server.
#variable_conflict use_column
declare
    v_age   double precision;
    v_gid   text;
    v_owner text;
begin
    -- The oldest open or prepared transaction prevents cleanup of dead rows.
    return query
    select 'clean_up_horizon', null::text, coalesce(max(h.age), 0), 300::double precision,
           3600::double precision,
           coalesce(
               (array_agg(h.holder order by h.age desc))[1]
               || ' prevents cleanup of dead rows; rowq stays fast, other tables bloat',
               'no transaction is older than 1 second'
           )
    from (
        select extract(epoch from clock_timestamp() - a.xact_start)::double precision as age,
               format('session %s of %s (%s)', a.pid, a.usename, a.state) as holder
        from pg_catalog.pg_stat_activity a
        where a.datname = current_database()
          and a.pid <> pg_backend_pid()
          and coalesce(a.backend_xmin, a.backend_xid) is not null
          and a.xact_start < clock_timestamp() - interval '1 second'
        union all
        select extract(epoch from clock_timestamp() - p.prepared)::double precision,
               format('prepared transaction %s', quote_literal(p.gid))
        from pg_catalog.pg_prepared_xacts p
        where p.database = current_database()
          and p.prepared < clock_timestamp() - interval '1 second'
    ) h;

    -- A prepared transaction keeps its rows locked, even after a restart. virtualtransaction joins
    -- its locks to the lock on its own id. Listing all locks is expensive, so do it only if one
    -- exists.
    if exists (
        select
        from pg_catalog.pg_prepared_xacts p
        where p.database = current_database()
    ) then
        with locks as materialized (
            select l.locktype, l.transactionid, l.virtualtransaction, l.database, l.relation, l.mode
            from pg_catalog.pg_locks l
            where l.pid is null
        )
        select extract(epoch from clock_timestamp() - p.prepared), p.gid, p.owner
        into v_age, v_gid, v_owner
        from pg_catalog.pg_prepared_xacts p
        join locks t on t.locktype = 'transactionid' and t.transactionid = p.transaction
        where p.database = current_database()
          and exists (
              select
              from locks l
              join pg_catalog.pg_class c on c.oid = l.relation
              join pg_catalog.pg_database d on d.oid = l.database
              where l.virtualtransaction = t.virtualtransaction
                and l.locktype = 'relation'
                and l.mode <> 'AccessShareLock'
                and d.datname = current_database()
                and c.relnamespace = 'rowq'::regnamespace
          )
        order by p.prepared
        limit 1;
    end if;
    return query
    select 'prepared_transactions', null::text, greatest(coalesce(v_age, 0), 0),
           30::double precision, 300::double precision,
           case
               when v_gid is null
                   then 'seconds a prepared transaction has kept rows of rowq locked'
               else format(
                   'seconds prepared transaction %L of %I has kept rows of rowq locked; '
                   'end it with commit prepared %1$L or rollback prepared %1$L', v_gid, v_owner
               )
           end;

    -- A replication slot has an age in transactions, not in seconds.
    return query
    select 'replication_slot_horizon', null::text,
           coalesce(max(greatest(age(s.xmin), age(s.catalog_xmin))), 0)::double precision,
           10000000::double precision, 100000000::double precision,
           coalesce('slot ' || (array_agg(
               s.slot_name::text order by greatest(age(s.xmin), age(s.catalog_xmin)) desc
           ))[1] || ' holds back the horizon by this number of transactions',
               'no slot holds back the horizon')
    from pg_catalog.pg_replication_slots s
    where coalesce(s.xmin, s.catalog_xmin) is not null;

    return query
    select 'maintain_fault', null::text, count(*)::double precision, 1::double precision,
           1::double precision,
           coalesce(
               min(format('maintain has failed for queue %s: %s', q.queue_name, m.value)),
               'maintain has failed for no queue'
           )
    from rowq.meta m
    join rowq.queue q on m.name = 'maintain_fault.' || q.queue_id;

    -- A session that listens and stays in a transaction fills the notification queue.
    return query
    select 'notification_queue', null::text,
           round((pg_notification_queue_usage() * 100)::numeric, 3)::double precision,
           25::double precision, 50::double precision,
           'per cent of the notification queue is used; end sessions that listen and are idle in a '
           'transaction; from 50 on, producers send no notifications and workers poll';
end;
$$;
