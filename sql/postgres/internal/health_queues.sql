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
-- purpose   Return the checks of each queue.
#variable_conflict use_column
begin
    return query
    select 'oldest_ready', q.queue_name,
           coalesce(extract(epoch from clock_timestamp() - r.oldest), 0)::double precision,
           300::double precision, 3600::double precision,
           'seconds that the oldest ready message has waited'
           || case when q.paused_at is null then '' else '; the queue is paused' end
    from rowq.queue q
    cross join lateral rowq.internal_count_ready(q.part_id, 1) r;

    return query
    select 'dead_messages', q.queue_name, s.dead::double precision, 1::double precision,
           1000::double precision, 'dead messages, counted up to 1000; see list_dead and reset'
    from rowq.queue q
    cross join lateral (
        select count(*) as dead
        from (select 1 from rowq.dead d where d.part_id = q.part_id limit 1000) x
    ) s;

    return query
    select 'overdue_delayed', q.queue_name,
           coalesce(extract(epoch from clock_timestamp() - w.due_at), 0)::double precision,
           30::double precision, 300::double precision,
           'seconds that the oldest due message has not been promoted; call maintain every second'
    from rowq.queue q
    left join lateral (
        select d.due_at
        from rowq.delayed d
        where d.part_id = q.part_id
          and d.due_at <= statement_timestamp()
          and d.due_at >= rowq.internal_from_microseconds(
              rowq.internal_read_safe_floor(q.part_id, -2::smallint)
          )
        order by d.part_id, d.due_at
        limit 1
    ) w on true;

    return query
    select 'expired_leases', q.queue_name,
           coalesce(extract(epoch from clock_timestamp() - c.lease_until), 0)::double precision,
           30::double precision, 300::double precision,
           'seconds that the oldest expired lease has not been reaped; call maintain every second'
    from rowq.queue q
    cross join lateral (
        select min(k.lease_until) filter (where k.lease_until <= clock_timestamp()) as lease_until
        from rowq.claim k
        where k.part_id = q.part_id
          and k.claim_id >= rowq.internal_read_safe_floor(q.part_id, -1::smallint)
    ) c;

    return query
    select 'waits_for_dead', q.queue_name, s.waiting::double precision, 1::double precision,
           1000::double precision,
           'messages that wait for the newest 10000 dead ones, counted up to 1000; reset or '
           'cancel these'
    from rowq.queue q
    cross join lateral (
        select count(*) as waiting
        from (
            select
            from (
                select d.message_id
                from rowq.dead d
                where d.part_id = q.part_id
                order by d.part_id desc, d.message_id desc
                limit 10000
            ) d
            cross join lateral (
                select
                from rowq.successor x
                join rowq.blocked b on b.part_id = x.part_id and b.message_id = x.message_id
                where x.part_id = q.part_id
                  and x.predecessor_id = d.message_id
                limit 1000
            ) w
            limit 1000
        ) x
    ) s;

    return query
    select 'overdue_groups', q.queue_name,
           coalesce(extract(epoch from clock_timestamp() - w.due_at), 0)::double precision,
           30::double precision, 300::double precision,
           'seconds that a group, or what waits for others, has waited for a transaction to end, '
           'or for maintain'
    from rowq.queue q
    left join lateral (
        select r.due_at
        from rowq.recheck r
        where r.part_id = q.part_id
          and r.due_at <= statement_timestamp()
          and r.due_at >= rowq.internal_from_microseconds(
              rowq.internal_read_safe_floor(q.part_id, -4::smallint)
          )
        order by r.part_id, r.due_at
        limit 1
    ) w on true;

    return query
    select 'overdue_expiries', q.queue_name,
           coalesce(extract(epoch from clock_timestamp() - w.expires_at), 0)::double precision,
           30::double precision, 300::double precision,
           'seconds that a message whose time has come has waited for maintain, or for who holds it'
    from rowq.queue q
    left join lateral (
        select e.expires_at
        from rowq.expiry e
        where e.part_id = q.part_id
          and e.expires_at <= statement_timestamp()
          and e.expires_at >= rowq.internal_from_microseconds(
              rowq.internal_read_safe_floor(q.part_id, -7::smallint)
          )
        order by e.part_id, e.expires_at
        limit 1
    ) w on true;

    return query
    select 'overdue_results', q.queue_name,
           greatest(
               coalesce(extract(epoch from clock_timestamp() - w.finished_at), 0)
               - q.result_seconds,
               0
           )::double precision,
           300::double precision, 3600::double precision,
           'seconds that the oldest result has been kept beyond result_seconds; call maintain '
           'every second'
    from rowq.queue q
    left join lateral (
        select r.finished_at
        from rowq.result r
        where r.part_id = q.part_id
          and r.finished_at >= rowq.internal_from_microseconds(
              rowq.internal_read_safe_floor(q.part_id, -5::smallint)
          )
        order by r.part_id, r.finished_at
        limit 1
    ) w on true;

    return query
    select 'overdue_history', q.queue_name,
           greatest(
               coalesce(extract(epoch from clock_timestamp() - w.ended_at), 0)
               - q.history_days * 86400,
               0
           )::double precision,
           3600::double precision, 86400::double precision,
           'seconds that the oldest attempt has been kept beyond history_days; call maintain '
           'every second'
    from rowq.queue q
    left join lateral (
        select h.ended_at
        from rowq.history h
        where h.part_id = q.part_id
          and h.ended_at >= rowq.internal_from_microseconds(
              rowq.internal_read_safe_floor(q.part_id, -8::smallint)
          )
        order by h.part_id, h.ended_at
        limit 1
    ) w on true;

    return query
    select 'overdue_schedules', q.queue_name,
           coalesce(extract(epoch from clock_timestamp() - w.next_run_at), 0)::double precision,
           30::double precision, 300::double precision,
           'seconds that a tick of a schedule has not been run; call maintain every second'
    from rowq.queue q
    cross join lateral (
        select min(s.next_run_at) filter (where s.next_run_at <= clock_timestamp()) as next_run_at
        from rowq.schedule s
        where s.part_id = q.part_id
    ) w;

    return query
    select 'failed_schedules', q.queue_name, w.failed::double precision, 1::double precision,
           1000::double precision,
           'schedules whose last tick made no message; list_schedules says why'
    from rowq.queue q
    cross join lateral (
        select count(s.last_error) as failed
        from rowq.schedule s
        where s.part_id = q.part_id
    ) w;
end;
$$;
