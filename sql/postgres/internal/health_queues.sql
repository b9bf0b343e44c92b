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
-- routine   internal_health_queues
-- purpose   Return the checks of each queue, and whether a sequence is behind the numbers that are stored.
#variable_conflict use_column
declare
    v_queue      record;
    v_from       record;
    v_seen       record;
    v_oldest     timestamp with time zone;
    v_now        timestamp with time zone;
    v_waiting    bigint;
    v_recheck_at timestamp with time zone;
    v_expires_at timestamp with time zone;
    v_newest     bigint := 0;
    v_claim      bigint := 0;
    v_part_id    integer := 0;
begin
    for v_queue in
        select q.part_id, q.queue_name, q.paused_at is not null as is_paused, q.result_seconds,
               q.history_days
        from rowq.queue q
    loop
        v_oldest := (rowq.internal_count_ready(v_queue.part_id, 1)).oldest;

        -- The safe floors are read before what they are for, as internal_read_safe_floor does, but
        -- in one statement.
        select max(f.safe) filter (where l.lane = -1 /* claim */) as claims,
               max(f.safe) filter (where l.lane = -2 /* delayed */) as delayed,
               max(f.safe) filter (where l.lane = -3 /* finished */) as finished,
               max(f.safe) filter (where l.lane = -4 /* deferred */) as tied,
               max(f.safe) filter (where l.lane = -7 /* result */) as results,
               max(f.safe) filter (where l.lane = -6 /* expiry */) as expiring,
               max(f.safe) filter (where l.lane = -8 /* history */) as history,
               max(f.seq - 1) filter (where l.lane in (-1 /* claim */, -3 /* finished */)) as given
        into v_from
        from unnest('{-1,-2,-3,-4,-6,-7,-8}'::smallint[]) l (lane)
        cross join lateral (
            select x.safe, x.seq
            from rowq.floor x
            where x.part_id = v_queue.part_id
              and x.lane = l.lane
            order by x.part_id, x.lane, x.generation
            limit 1
        ) f;
        v_now := clock_timestamp();

        -- One statement looks for everything, and reads the rows of this queue only.
        select (
                   select count(*)
                   from (
                       select
                       from rowq.dead d
                       where d.part_id = v_queue.part_id
                       limit 1000
                   ) x
               ) as dead,
               (
                   select d.due_at
                   from rowq.delayed d
                   where d.part_id = v_queue.part_id
                     and d.due_at >= rowq.internal_from_microseconds(coalesce(v_from.delayed, 0))
                     and d.due_at <= v_now
                   order by d.part_id, d.due_at
                   limit 1
               ) as due_at,
               (
                   select min(k.lease_until) filter (where k.lease_until <= v_now)
                   from rowq.claim k
                   where k.part_id = v_queue.part_id
                     and k.claim_id >= coalesce(v_from.claims, 0)
               ) as lease_until,
               (
                   select r.finished_at
                   from rowq.result r
                   where r.part_id = v_queue.part_id
                     and r.finished_at
                         >= rowq.internal_from_microseconds(coalesce(v_from.results, 0))
                   order by r.part_id, r.finished_at
                   limit 1
               ) as finished_at,
               (
                   select h.ended_at
                   from rowq.history h
                   where h.part_id = v_queue.part_id
                     and h.ended_at >= rowq.internal_from_microseconds(coalesce(v_from.history, 0))
                   order by h.part_id, h.ended_at
                   limit 1
               ) as ended_at,
               s.next_run_at, s.failed,
               (
                   select m.message_id
                   from rowq.message m
                   where m.part_id = v_queue.part_id
                   order by m.part_id desc, m.message_id desc
                   limit 1
               ) as newest,
               (
                   select k.claim_id
                   from rowq.claim k
                   where k.part_id = v_queue.part_id
                     and k.claim_id >= coalesce(v_from.claims, 0)
                   order by k.part_id desc, k.claim_id desc
                   limit 1
               ) as claim_id,
               (
                   select f.finish_id
                   from rowq.finished f
                   where f.part_id = v_queue.part_id
                     and f.finish_id >= coalesce(v_from.finished, 0)
                   order by f.part_id desc, f.finish_id desc
                   limit 1
               ) as finish_id,
               n.message_id as kept_id, a.message_id as tried_id, a.claim_id as tried_claim
        into v_seen
        from (
            select min(x.next_run_at) filter (where x.next_run_at <= v_now) as next_run_at,
                   count(x.last_error) as failed
            from rowq.schedule x
            where x.part_id = v_queue.part_id
        ) s
        left join lateral (
            select r.message_id
            from rowq.result r
            where r.part_id = v_queue.part_id
              and r.finished_at >= rowq.internal_from_microseconds(coalesce(v_from.results, 0))
            order by r.part_id desc, r.finished_at desc
            limit 1
        ) n on true
        left join lateral (
            select h.message_id, h.claim_id
            from rowq.history h
            where h.part_id = v_queue.part_id
              and h.ended_at >= rowq.internal_from_microseconds(coalesce(v_from.history, 0))
            order by h.part_id desc, h.ended_at desc
            limit 1
        ) a on true;
        v_newest := greatest(v_newest, v_seen.newest, v_seen.kept_id, v_seen.tried_id);
        v_claim := greatest(
            v_claim, v_seen.claim_id, v_seen.finish_id, v_seen.tried_claim, v_from.given
        );
        v_part_id := greatest(v_part_id, v_queue.part_id);

        -- Only a queue in which messages have waited for others, or could expire, has these lanes.
        v_waiting := 0;
        v_recheck_at := null;
        v_expires_at := null;
        if v_from.tied is not null or v_from.expiring is not null then
            select (
                       select count(*)
                       from (
                           select
                           from (
                               select d.message_id
                               from rowq.dead d
                               where d.part_id = v_queue.part_id
                               order by d.part_id desc, d.message_id desc
                               limit 10000
                           ) d
                           cross join lateral (
                               select
                               from rowq.successor x
                               join rowq.blocked b
                                   on b.part_id = x.part_id and b.message_id = x.message_id
                               where x.part_id = v_queue.part_id
                                 and x.predecessor_id = d.message_id
                               limit 1000
                           ) w
                           limit 1000
                       ) x
                   ),
                   (
                       select r.due_at
                       from rowq.recheck r
                       where r.part_id = v_queue.part_id
                         and r.due_at >= rowq.internal_from_microseconds(coalesce(v_from.tied, 0))
                         and r.due_at <= v_now
                       order by r.part_id, r.due_at
                       limit 1
                   ),
                   (
                       select e.expires_at
                       from rowq.expiry e
                       where e.part_id = v_queue.part_id
                         and e.expires_at
                             >= rowq.internal_from_microseconds(coalesce(v_from.expiring, 0))
                         and e.expires_at <= v_now
                       order by e.part_id, e.expires_at
                       limit 1
                   )
            into v_waiting, v_recheck_at, v_expires_at;
        end if;

        return query
        select c.check_name, v_queue.queue_name, c.value::double precision, c.warning, c.critical,
               c.detail
        from (
            values
                (
                    'oldest_ready', coalesce(extract(epoch from v_now - v_oldest), 0),
                    300::double precision, 3600::double precision,
                    'seconds that the oldest ready message has waited'
                    || case when v_queue.is_paused then '; the queue is paused' else '' end
                ),
                (
                    'dead_messages', v_seen.dead, 1, 1000,
                    'dead messages, counted up to 1000; see list_dead and reset'
                ),
                (
                    'overdue_delayed', coalesce(extract(epoch from v_now - v_seen.due_at), 0),
                    30, 300,
                    'seconds that the oldest due message has not been promoted; '
                    'call maintain every second'
                ),
                (
                    'expired_leases', coalesce(extract(epoch from v_now - v_seen.lease_until), 0),
                    30, 300,
                    'seconds that the oldest expired lease has not been reaped; '
                    'call maintain every second'
                ),
                (
                    'waits_for_dead', v_waiting, 1, 1000,
                    'messages that wait for the newest 10000 dead ones, counted up to 1000; '
                    'reset or cancel these'
                ),
                (
                    'overdue_groups', coalesce(extract(epoch from v_now - v_recheck_at), 0),
                    30, 300,
                    'seconds that a group, or what waits for others, has waited for a transaction '
                    'to end, or for maintain'
                ),
                (
                    'overdue_expiries', coalesce(extract(epoch from v_now - v_expires_at), 0),
                    30, 300,
                    'seconds that a message whose time has come has waited for maintain, or for '
                    'who holds it'
                ),
                (
                    'overdue_results',
                    greatest(
                        coalesce(extract(epoch from v_now - v_seen.finished_at), 0)
                        - v_queue.result_seconds,
                        0
                    ),
                    300, 3600,
                    'seconds that the oldest result has been kept beyond result_seconds; '
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
                    'seconds that the oldest attempt has been kept beyond history_days; '
                    'call maintain every second'
                ),
                (
                    'overdue_schedules',
                    coalesce(extract(epoch from v_now - v_seen.next_run_at), 0), 30, 300,
                    'seconds that a tick of a schedule has not been run; call maintain every '
                    'second, or end the transaction that has locked the schedule'
                ),
                (
                    'failed_schedules', v_seen.failed, 1, 1000,
                    'schedules whose last tick made no message; list_schedules says why'
                )
        ) c (check_name, value, warning, critical, detail);
    end loop;

    -- Ask the sequences after the rows, so that they are no earlier than any of these.
    return query
    select s.check_name, s.queue_name, s.value, s.warning, s.critical, s.detail
    from rowq.internal_health_sequences(v_newest, v_claim, v_part_id) s;
end;
$$;
