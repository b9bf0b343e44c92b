create or replace function rowq.internal_idle_parts(p_part_ids integer[])
returns integer[]
language plpgsql
as $$
-- routine   internal_idle_parts
-- purpose   Return those of the parts in which maintain would find nothing to do.
-- promise   P13 P14
-- differs   only engines whose readers walk dead rows need it
declare
    -- Beyond this time the look has walked over dead rows, and some floor must move.
    c_short_walk constant interval := interval '2 milliseconds'
        + cardinality(p_part_ids) * interval '50 microseconds';
    v_now        constant timestamp with time zone := clock_timestamp();
    v_newest     constant bigint[] := array[
        rowq.internal_newest_number(0::smallint),
        rowq.internal_newest_number(-1::smallint /* claim */),
        rowq.internal_newest_number(-2::smallint /* delayed */)
    ];
    v_parts      integer[];
begin
    with recursive lane as (
        select f.part_id, f.lane, f.seq, f.safe, f.frontier, f.writers, f.rescan_at, f.sweep_at
        from unnest(p_part_ids) p (part_id)
        cross join lateral (
            select x.part_id, x.lane, x.seq, x.safe, x.frontier, x.writers, x.rescan_at, x.sweep_at
            from rowq.floor x
            where x.part_id = p.part_id
            order by x.part_id, x.lane, x.generation
            limit 1
        ) f
        union all
        select f.part_id, f.lane, f.seq, f.safe, f.frontier, f.writers, f.rescan_at, f.sweep_at
        from lane l
        cross join lateral (
            select x.part_id, x.lane, x.seq, x.safe, x.frontier, x.writers, x.rescan_at, x.sweep_at
            from rowq.floor x
            where x.part_id = l.part_id
              and x.lane > l.lane
            order by x.part_id, x.lane, x.generation
            limit 1
        ) f
    )
    select array_agg(h.part_id) into v_parts
    from (
        select l.part_id
        from lane l
        group by l.part_id
        having count(*) filter (where l.lane between -3 /* finished */ and -1 /* claim */) = 3
           and bool_and(
               (
                   l.lane in (-5 /* started */, -7 /* result */, -8 /* history */)
                   or l.sweep_at between v_now and v_now + interval '2 hours'
               )
               and l.rescan_at <= v_now
               and l.writers < pg_snapshot_xmax(pg_current_snapshot())
               and case
                   when l.lane >= 0 then
                       v_newest[1] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.ready r
                           where r.part_id = l.part_id
                             and r.lane = l.lane
                             and r.seq >= l.safe
                       )
                   when l.lane = -1 /* claim */ then
                       v_newest[2] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.claim c
                           where c.part_id = l.part_id
                             and c.claim_id >= l.safe
                       )
                   when l.lane = -5 /* started */ then
                       not exists (
                           select
                           from rowq.started s
                           where s.part_id = l.part_id
                             and s.started_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                       )
                   when l.lane = -7 /* result */ then
                       not exists (
                           select
                           from rowq.result r
                           where r.part_id = l.part_id
                             and r.finished_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                             and r.finished_at < v_now - (
                                 select make_interval(secs => q.result_seconds)
                                 from rowq.queue q
                                 where q.part_id = l.part_id
                             )
                       )
                   when l.lane = -8 /* history */ then
                       not exists (
                           select
                           from rowq.history h
                           where h.part_id = l.part_id
                             and h.ended_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                             and h.ended_at < v_now - (
                                 select make_interval(days => q.history_days)
                                 from rowq.queue q
                                 where q.part_id = l.part_id
                             )
                       )
                   when l.lane = -3 /* finished */ then
                       v_newest[2] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.finished f
                           where f.part_id = l.part_id
                             and f.finish_id >= l.safe
                       )
                   when l.lane = -4 /* deferred */ then
                       v_newest[3] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.recheck r
                           where r.part_id = l.part_id
                             and r.due_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                             and r.due_at <= v_now
                       )
                   when l.lane = -6 /* expiry */ then
                       v_newest[3] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.expiry e
                           where e.part_id = l.part_id
                             and e.expires_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                             and e.expires_at <= v_now
                       )
                   else
                       v_newest[3] >= greatest(l.frontier, l.seq - 1)
                       and not exists (
                           select
                           from rowq.delayed d
                           where d.part_id = l.part_id
                             and d.due_at >= timestamp with time zone 'epoch'
                                 + l.safe * interval '1 microsecond'
                             and d.due_at <= v_now
                       )
               end
           )
    ) h
    -- As "not exists" this would become a join that reads all schedules.
    where (
        select s.part_id
        from rowq.schedule s
        where s.part_id = h.part_id
          and s.next_run_at <= v_now
        limit 1
    ) is null;
    if clock_timestamp() - v_now > c_short_walk then
        return '{}'::integer[];
    end if;
    return coalesce(v_parts, '{}'::integer[]);
end;
$$;
