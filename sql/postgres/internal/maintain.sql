-- Maintain: floors, expiry, promote, reap, schedules, archive, purges.
--
-- Any session may call maintain at any time. For each queue one caller is elected by a lock that is
-- tried, never waited for: many callers cost no more than one. One statement finds the queues with
-- work; waiting messages need none. Delivery comes first; purges get the rest of 100 ms.
-- If a queue fails, its error is kept for health and the other queues are maintained; a call for
-- that queue alone raises the error.
--
--   elect_leader -> maintained_queues
--   maintain -> busy_queues, record_maintain_error
--   maintain -> maintain_queue -> maintained_queues
--
-- Writes meta, queue. Only reads claim, delayed, expiry, finished, floor, history, ready, deferred,
-- result, schedule, started.

create or replace function rowq.internal_maintained_queues(p_lock integer)
returns integer[]
language plpgsql
as $$
-- purpose   List the queues whose lock of this kind is held by a session that may call maintain.
-- differs   only engines where any session can take such a lock need it
begin
    return array(
        select l.objid::integer
        from pg_locks l
        cross join lateral pg_stat_get_activity(l.pid) a
        where l.locktype = 'advisory'
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.classid = p_lock::oid
          and l.objsubid = 2
          and l.granted
          -- A prepared transaction has no session, so its locks elect no session.
          and l.pid is not null
          -- Count members of a role that may call maintain, even if they have to "set role" first.
          and exists (
              select 1
              from pg_proc p
              cross join lateral aclexplode(p.proacl) given
              where p.oid = 'rowq.maintain(text, integer)'::regprocedure
                and pg_has_role(a.usesysid, given.grantee, 'member')
          )
    );
end;
$$;

create or replace function rowq.internal_busy_queues(
    p_queue_ids integer[],
    out o_busy    integer[],
    out o_resting integer[]
)
language plpgsql
as $$
-- purpose   Return the queues in which maintain has work to do, and those that only need a sweep.
-- differs   only engines whose readers scan dead rows need it
declare
    c_epoch        constant timestamp with time zone := timestamp with time zone 'epoch';
    c_unit         constant interval := interval '1 microsecond';
    -- A check that takes longer has read dead rows, so a floor must move.
    c_fast_scan    constant interval := interval '100 microseconds';
    -- move_floor does not move a floor by less.
    c_min_step     constant integer := 400;
    v_now          constant timestamp with time zone := clock_timestamp();
    v_far          constant timestamp with time zone := v_now + interval '2 hours';
    v_xmax         constant xid8 := pg_snapshot_xmax(pg_current_snapshot());
    v_newest_seq   constant bigint := rowq.internal_newest_number(0::smallint);
    v_newest_claim constant bigint := rowq.internal_newest_number(-1::smallint /* claim */);
    v_newest_time  constant bigint := rowq.internal_newest_number(-2::smallint /* delayed */);
    -- Reading all floors of a queue in order costs half of a search for each lane, but also reads
    -- dead rows. So do that only if floor has room for no more than 20 rows per queue.
    v_is_small     constant boolean :=
        pg_relation_size('rowq.floor') <= cardinality(p_queue_ids) * 2048::bigint;
begin
    select coalesce(
               array_agg(c.queue_id) filter (
                   where c.is_sweep_due is null
                      or c.ended > c.began + c_fast_scan
                      or c.has_due_schedule
               ),
               '{}'
           ),
           coalesce(array_agg(c.queue_id) filter (where c.is_sweep_due), '{}')
    into o_busy, o_resting
    from (
        select q.queue_id, clock_timestamp() as began,
               (
                   with recursive search as (
                       (
                           select f.lane, f.start_seq, f.safe_seq, f.pending_seq, f.pending_xid,
                                  f.rescan_at, f.sweep_at
                           from rowq.floor f
                           where not v_is_small
                             and f.queue_id = q.queue_id
                           order by f.queue_id, f.lane, f.generation
                           limit 1
                       )
                       union all
                       select n.lane, n.start_seq, n.safe_seq, n.pending_seq, n.pending_xid,
                              n.rescan_at, n.sweep_at
                       from search s
                       cross join lateral (
                           select f.lane, f.start_seq, f.safe_seq, f.pending_seq, f.pending_xid,
                                  f.rescan_at, f.sweep_at
                           from rowq.floor f
                           where f.queue_id = q.queue_id
                             and f.lane > s.lane
                           order by f.queue_id, f.lane, f.generation
                           limit 1
                       ) n
                   )
                   select bool_or(
                              x.lane not in (-5 /* started */, -7 /* result */, -8 /* history */)
                              and x.sweep_at not between v_now and v_far
                          )
                   from (
                       (
                           select distinct on (f.queue_id, f.lane)
                                  f.lane, f.start_seq, f.safe_seq, f.pending_seq, f.pending_xid,
                                  f.rescan_at, f.sweep_at
                           from rowq.floor f
                           where v_is_small
                             and f.queue_id = q.queue_id
                           order by f.queue_id, f.lane, f.generation
                       )
                       union all
                       select s.lane, s.start_seq, s.safe_seq, s.pending_seq, s.pending_xid,
                              s.rescan_at, s.sweep_at
                       from search s
                   ) x
                   -- maintain adds the lanes that a queue needs.
                   having count(*) filter (
                              where x.lane between -3 /* finished */ and -1 /* claim */
                                 or x.lane = -5 /* started */ and q.rate_limit > 0
                                 or x.lane = -7 /* result */ and q.result_seconds > 0
                                 or x.lane = -8 /* history */ and q.history_days > 0
                          ) = 3 + num_nonnulls(
                              nullif(q.rate_limit, 0), nullif(q.result_seconds, 0),
                              nullif(q.history_days, 0)
                          )
                      and bool_and(
                          x.rescan_at <= v_now
                          and x.pending_xid < v_xmax
                          and case
                              when x.lane >= 0 then
                                  v_newest_seq >= greatest(x.pending_seq, x.start_seq - 1)
                                  -- Waiting messages need no work while few dead rows lie below
                                  -- them: between safe start and floor, and up to the first one.
                                  and coalesce(
                                      (
                                          select r.seq between x.start_seq
                                                     and x.start_seq + c_min_step
                                                 and x.start_seq - x.safe_seq <= c_min_step
                                          from rowq.ready r
                                          where r.queue_id = q.queue_id
                                            and r.lane = x.lane
                                            and r.seq >= x.safe_seq
                                          order by r.queue_id, r.lane, r.seq
                                          limit 1
                                      ),
                                      true
                                  )
                              when x.lane = -1 /* claim */ then
                                  v_newest_claim >= greatest(x.pending_seq, x.start_seq - 1)
                                  and not exists (
                                      select
                                      from rowq.claim c
                                      where c.queue_id = q.queue_id
                                        and c.claim_id >= x.safe_seq
                                  )
                              when x.lane = -2 /* delayed */ then
                                  v_newest_time >= greatest(x.pending_seq, x.start_seq - 1)
                                  and not exists (
                                      select
                                      from rowq.delayed d
                                      where d.queue_id = q.queue_id
                                        and d.due_at >= c_epoch + x.safe_seq * c_unit
                                        and d.due_at <= v_now
                                  )
                              when x.lane = -3 /* finished */ then
                                  v_newest_claim >= greatest(x.pending_seq, x.start_seq - 1)
                                  and not exists (
                                      select
                                      from rowq.finished f
                                      where f.queue_id = q.queue_id
                                        and f.finish_id >= x.safe_seq
                                  )
                              when x.lane = -4 /* deferred */ then
                                  v_newest_time >= greatest(x.pending_seq, x.start_seq - 1)
                                  and not exists (
                                      select
                                      from rowq.deferred r
                                      where r.queue_id = q.queue_id
                                        and r.due_at >= c_epoch + x.safe_seq * c_unit
                                        and r.due_at <= v_now
                                  )
                              when x.lane = -6 /* expiry */ then
                                  v_newest_time >= greatest(x.pending_seq, x.start_seq - 1)
                                  and not exists (
                                      select
                                      from rowq.expiry e
                                      where e.queue_id = q.queue_id
                                        and e.expires_at >= c_epoch + x.safe_seq * c_unit
                                        and e.expires_at <= v_now
                                  )
                              when x.lane = -5 /* started */ then
                                  not exists (
                                      select
                                      from rowq.started s
                                      where s.queue_id = q.queue_id
                                        and s.started_at >= c_epoch + x.safe_seq * c_unit
                                  )
                              when x.lane = -7 /* result */ then
                                  not exists (
                                      select
                                      from rowq.result r
                                      where r.queue_id = q.queue_id
                                        and r.finished_at >= c_epoch + x.safe_seq * c_unit
                                        and r.finished_at
                                            < v_now - make_interval(secs => q.result_seconds)
                                  )
                              else
                                  not exists (
                                      select
                                      from rowq.history h
                                      where h.queue_id = q.queue_id
                                        and h.ended_at >= c_epoch + x.safe_seq * c_unit
                                        and h.ended_at
                                            < v_now - make_interval(days => q.history_days)
                                  )
                          end
                      )
               ) as is_sweep_due,
               clock_timestamp() as ended,
               -- "exists" would become a join that reads all schedules.
               (
                   select s.queue_id
                   from rowq.schedule s
                   where s.queue_id = q.queue_id
                     and s.next_run_at <= v_now
                   limit 1
               ) is not null as has_due_schedule
        from rowq.queue q
        where q.queue_id = any (p_queue_ids)
    ) c;
end;
$$;

create or replace function rowq.internal_maintain_queue(
    p_queue      rowq.queue,
    p_is_idle    boolean,
    p_batch_size integer,
    p_until      timestamp with time zone,
    p_pending_seqs  bigint[],
    p_locked     text[],
    p_maintained integer[],
    p_sweep_interval interval,
    out o_elected            boolean,
    out o_promoted           integer,
    out o_reaped             integer,
    out o_died               integer,
    out o_archived           integer,
    out o_purged             integer,
    out o_partitions_dropped integer,
    out o_expired            integer,
    out o_locked             text[],
    out o_maintained         integer[]
)
language plpgsql
as $$
-- purpose   Maintain one queue in the session that is elected for it, unless the queue is idle.
-- locks     advisory lock of the queue, tried
declare
    v_lane        smallint := -1;
    v_solved      integer;
    v_may_reap    boolean;
    v_may_sweep   boolean;
    v_started     timestamp with time zone;
    v_pending_xid xid8;
begin
    -- Any session can take an advisory lock, so count it only if its holder may call maintain. The
    -- check costs more with more locks on the server, so its result is passed on to the next
    -- queues.
    o_maintained := p_maintained;
    o_elected := pg_try_advisory_xact_lock(1919907697, p_queue.queue_id);
    if not o_elected and p_queue.queue_id <> all (o_maintained) then
        o_maintained := rowq.internal_maintained_queues(1919907697);
        o_elected := p_queue.queue_id <> all (o_maintained);
    end if;
    o_promoted := 0;
    o_reaped := 0;
    o_died := 0;
    o_archived := 0;
    o_purged := 0;
    o_partitions_dropped := 0;
    o_expired := 0;
    o_locked := p_locked;
    if p_is_idle or not o_elected then
        return;
    end if;

    -- After a slow scan of dead claims, back off 50 times its duration, as floors do.
    v_may_reap := rowq.internal_is_rescan_due(
        p_queue.queue_id, -1::smallint /* claim */, 'rescan'
    );
    v_may_sweep := rowq.internal_is_rescan_due(
        p_queue.queue_id, -3::smallint /* finished */, 'sweep'
    );

    -- Move the floors first, so that the steps below find late rows.
    if p_pending_seqs is not null then
        v_pending_xid := pg_current_xact_id();
    end if;
    perform rowq.internal_move_floor(
        p_queue.queue_id, -1::smallint /* claim */, false, true, p_pending_seqs[2], v_pending_xid,
        p_sweep_interval => p_sweep_interval
    );
    perform rowq.internal_move_floor(
        p_queue.queue_id, -2::smallint /* delayed */, false, true, p_pending_seqs[3], v_pending_xid,
        p_sweep_interval => p_sweep_interval
    );

    -- This lane exists once a message with expiry was enqueued. Expire before any step that could
    -- make such a message ready.
    if exists (
        select 1 from rowq.floor f where f.queue_id = p_queue.queue_id and f.lane = -6 /* expiry */
    ) then
        perform rowq.internal_move_floor(
            p_queue.queue_id, -6::smallint /* expiry */, false, true, p_pending_seqs[3],
            v_pending_xid, p_sweep_interval => p_sweep_interval
        );
        o_expired := rowq.internal_expire(
            p_queue.queue_id, p_queue.archive_days, p_batch_size, p_pending_seqs[3], v_pending_xid
        );
    end if;

    o_promoted := rowq.internal_promote(p_queue.queue_id, p_batch_size);
    perform rowq.internal_run_schedules(p_queue.queue_id, p_queue.queue_name);

    -- This lane exists once work was deferred or a message was blocked.
    if exists (
        select 1
        from rowq.floor f
        where f.queue_id = p_queue.queue_id
          and f.lane = -4 /* deferred */
    ) then
        perform rowq.internal_move_floor(
            p_queue.queue_id, -4::smallint /* deferred */, false, true, p_pending_seqs[3],
            v_pending_xid, p_sweep_interval => p_sweep_interval
        );
        v_solved := rowq.internal_run_deferred(p_queue.queue_id, p_batch_size, true);
        -- From now on an empty dequeue runs deferred work.
        if not p_queue.has_deferred
           and current_setting('transaction_isolation') = 'read committed'
           and (v_solved > 0 or exists (
               select
               from rowq.deferred r
               where r.queue_id = p_queue.queue_id
           )) then
            update rowq.queue q
            set has_deferred = true
            where q.queue_id = (
                select x.queue_id
                from rowq.queue x
                where x.queue_id = p_queue.queue_id
                for update skip locked
            );
        end if;
    end if;

    if v_may_reap then
        v_started := clock_timestamp();
        select r.o_reaped, r.o_died into o_reaped, o_died
        from rowq.internal_reap(
            p_queue.queue_id, p_queue.max_attempts, p_queue.history_days, p_batch_size
        ) r;
        -- The floor cannot pass a claim whose lease is extended, so reap scans the dead claims
        -- behind it each time. Record a slow scan, so that reap backs off.
        if o_reaped + o_died < p_batch_size
           and clock_timestamp() - v_started > interval '20 milliseconds' then
            perform rowq.internal_move_floor(
                p_queue.queue_id, -1::smallint /* claim */, true, true, p_started => v_started
            );
        end if;
    end if;

    -- The queue may have rows from when it had an archive: check when it is swept.
    if 'archive' <> all (p_locked) and (p_queue.archive_days > 0 or v_may_sweep) then
        begin
            o_archived := rowq.internal_archive(p_queue.queue_id, p_batch_size);
            -- Purge whole days, when the queue is swept: dropping a partition costs less than
            -- deleting its rows.
            if v_may_sweep then
                select a.o_purged, a.o_partitions_dropped into o_purged, o_partitions_dropped
                from rowq.internal_purge_archive(
                    p_queue.queue_id, p_queue.archive_days, 10 * p_batch_size,
                    p_queue.archive_days > 0
                ) a;
            end if;
        exception
            -- An error in the archive, such as a full disk, is a warning: promote and reap must
            -- commit.
            when others then
                o_archived := 0;
                if sqlstate = '55P03' then
                    o_locked := o_locked || 'archive'::text;
                end if;
                raise warning 'rowq: archive of queue % failed: % %',
                    p_queue.queue_name, sqlstate, sqlerrm;
        end;
    end if;

    -- Sweep again in a minute if there is more to purge.
    perform rowq.internal_move_floor(
        p_queue.queue_id, -3::smallint /* finished */, false, true, p_pending_seqs[2],
        v_pending_xid,
        p_sweep_interval => case
            when o_purged < 10 * p_batch_size then p_sweep_interval else interval '1 minute'
        end
    );

    -- The queue may have rows from when it had a rate_limit: check when it is swept.
    if p_queue.rate_limit > 0 or v_may_sweep then
        perform rowq.internal_purge_started(
            p_queue.queue_id,
            case when p_queue.rate_limit > 0 then p_queue.rate_seconds else 0 end,
            10 * p_batch_size, p_pending_seqs[3], v_pending_xid
        );
    end if;

    -- The same holds for results and history, which have a lane once rows were purged. One batch
    -- always runs; further ones run until p_until, and results use half of that time. An error is a
    -- warning.
    if 'result' <> all (p_locked) and (
        p_queue.result_seconds > 0 or v_may_sweep
        or exists (
            select 1
            from rowq.floor f
            where f.queue_id = p_queue.queue_id
              and f.lane = -7 /* result */
        )
    ) then
        begin
            v_started := clock_timestamp();
            o_purged := o_purged + rowq.internal_purge_results(
                p_queue.queue_id, p_queue.result_seconds, p_batch_size,
                v_started + (p_until - v_started) / 2, p_pending_seqs[3], v_pending_xid
            );
        exception
            when others then
                if sqlstate = '55P03' then
                    o_locked := o_locked || 'result'::text;
                end if;
                raise warning 'rowq: results of queue % failed: % %',
                    p_queue.queue_name, sqlstate, sqlerrm;
        end;
    end if;
    if 'history' <> all (p_locked) and (
        p_queue.history_days > 0 or v_may_sweep
        or exists (
            select 1
            from rowq.floor f
            where f.queue_id = p_queue.queue_id
              and f.lane = -8 /* history */
        )
    ) then
        begin
            o_purged := o_purged + rowq.internal_purge_history(
                p_queue.queue_id, p_queue.history_days, p_batch_size, p_until, p_pending_seqs[3],
                v_pending_xid
            );
        exception
            when others then
                if sqlstate = '55P03' then
                    o_locked := o_locked || 'history'::text;
                end if;
                raise warning 'rowq: history of queue % failed: % %',
                    p_queue.queue_name, sqlstate, sqlerrm;
        end;
    end if;

    if o_promoted > 0 then
        perform rowq.internal_move_floor(p_queue.queue_id, -2::smallint /* delayed */, true);
    end if;
    loop
        select f.lane into v_lane
        from rowq.floor f
        where f.queue_id = p_queue.queue_id
          and f.lane > v_lane
        order by f.queue_id, f.lane, f.generation
        limit 1;
        exit when not found;
        perform rowq.internal_move_floor(
            p_queue.queue_id, v_lane, false, true, p_pending_seqs[1], v_pending_xid,
            p_sweep_interval => p_sweep_interval
        );
    end loop;
end;
$$;

create or replace function rowq.internal_record_maintain_error(p_queue_id integer, p_error text)
returns void
language plpgsql
as $$
-- purpose   Record the error of maintain for a queue, for health; null deletes it.
-- locks     advisory lock of the queue, tried; a meta row
declare
    v_name constant text := 'maintain_fault.' || p_queue_id;
begin
    -- Only the elected session writes this row, so no session waits for it.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
       or not pg_try_advisory_xact_lock(1919907697, p_queue_id) then
        return;
    end if;
    if p_error is null then
        delete from rowq.meta m
        where m.name = v_name;
        return;
    end if;
    insert into rowq.meta as m (name, value)
    values (v_name, left(p_error, 500))
    on conflict (name) do update
        set value      = excluded.value,
            changed_at = excluded.changed_at
        where m.value <> excluded.value;
end;
$$;
