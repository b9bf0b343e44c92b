create or replace function rowq.internal_maintain_queue(
    p_queue      rowq.queue,
    p_is_idle    boolean,
    p_batch_size integer,
    p_until      timestamp with time zone,
    p_frontiers  bigint[],
    p_locked     text[],
    p_maintained integer[],
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
-- routine   internal_maintain_queue
-- purpose   Run the housekeeping of one queue, unless it is idle, in the one session that is elected for it.
-- promise   P09 P11 P13 P14 P16 P19 P24 P26 P27 P30 P31 P36 P37
-- locks     advisory lock of the queue, tried
declare
    v_lane        smallint := -1;
    v_rechecked   integer;
    v_may_reap    boolean;
    v_may_sweep   boolean;
    v_started     timestamp with time zone;
    v_writers     xid8;
begin
    -- Any session may take an advisory lock, so a lock that is held counts only if its holder may
    -- call maintain. Finding that out costs more the more locks the server has, so what was found
    -- for one queue is used for the next ones too.
    o_maintained := p_maintained;
    o_elected := pg_try_advisory_xact_lock(1919907697, p_queue.part_id);
    if not o_elected and p_queue.part_id <> all (o_maintained) then
        o_maintained := rowq.internal_maintained_parts(1919907697);
        o_elected := p_queue.part_id <> all (o_maintained);
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

    -- After a long walk over dead claims, rest for fifty times as long as it took, as for floors.
    v_may_reap := rowq.internal_is_rescan_due(
        p_queue.part_id, -1::smallint /* claim */, 'rescan'
    );
    v_may_sweep := rowq.internal_is_rescan_due(
        p_queue.part_id, -3::smallint /* finished */, 'sweep'
    );

    -- Put the floors right first, so that the steps below find what was committed late.
    if p_frontiers is not null then
        v_writers := pg_current_xact_id();
    end if;
    perform rowq.internal_move_floor(
        p_queue.part_id, -1::smallint /* claim */, false, true, p_frontiers[2], v_writers
    );
    perform rowq.internal_move_floor(
        p_queue.part_id, -2::smallint /* delayed */, false, true, p_frontiers[3], v_writers
    );
    perform rowq.internal_move_floor(
        p_queue.part_id, -3::smallint /* finished */, false, true, p_frontiers[2], v_writers
    );

    -- Only a queue that has had messages that expire has this lane. They go before anything that
    -- might make them ready.
    if exists (
        select 1 from rowq.floor f where f.part_id = p_queue.part_id and f.lane = -6 /* expiry */
    ) then
        perform rowq.internal_move_floor(
            p_queue.part_id, -6::smallint /* expiry */, false, true, p_frontiers[3], v_writers
        );
        o_expired := rowq.internal_expire(
            p_queue.part_id, p_queue.archive_days, p_batch_size, p_frontiers[3], v_writers
        );
    end if;

    o_promoted := rowq.internal_promote(p_queue.part_id, p_batch_size);
    perform rowq.internal_run_schedules(p_queue.part_id, p_queue.queue_name);

    -- Only a queue that has left something to look at again, or in which messages have waited for
    -- others, has this lane.
    if exists (
        select 1 from rowq.floor f where f.part_id = p_queue.part_id and f.lane = -4 /* deferred */
    ) then
        perform rowq.internal_move_floor(
            p_queue.part_id, -4::smallint /* deferred */, false, true, p_frontiers[3], v_writers
        );
        v_rechecked := rowq.internal_recheck(p_queue.part_id, p_batch_size, true);
        -- From now on a dequeue that finds nothing looks at what was left, too.
        if not p_queue.has_recheck
           and current_setting('transaction_isolation') = 'read committed'
           and (v_rechecked > 0 or exists (
               select
               from rowq.recheck r
               where r.part_id = p_queue.part_id
           )) then
            update rowq.queue q
            set has_recheck = true
            where q.part_id = (
                select x.part_id
                from rowq.queue x
                where x.part_id = p_queue.part_id
                for update skip locked
            );
        end if;
    end if;

    if v_may_reap then
        v_started := clock_timestamp();
        select r.o_reaped, r.o_died into o_reaped, o_died
        from rowq.internal_reap(
            p_queue.part_id, p_queue.max_attempts, p_queue.history_days, p_batch_size
        ) r;
        -- The floor cannot pass a claim that is kept alive, so the dead claims behind it are walked
        -- each time. Note how long the walk took, so that reap rests too.
        if o_reaped + o_died < p_batch_size
           and clock_timestamp() - v_started > interval '20 milliseconds' then
            perform rowq.internal_move_floor(
                p_queue.part_id, -1::smallint /* claim */, true, true, p_started => v_started
            );
        end if;
    end if;

    -- A queue without an archive may have rows from a time when it had one, so look for them once a
    -- minute.
    if 'archive' <> all (p_locked) and (p_queue.archive_days > 0 or v_may_sweep) then
        begin
            o_archived := rowq.internal_archive(p_queue.part_id, p_batch_size);
            -- Purge whole days, and only once a minute, because dropping a partition costs less
            -- than deleting its rows.
            if v_may_sweep then
                select a.o_purged, a.o_partitions_dropped into o_purged, o_partitions_dropped
                from rowq.internal_purge_archive(
                    p_queue.part_id, p_queue.archive_days, 10 * p_batch_size,
                    p_queue.archive_days > 0
                ) a;
            end if;
        exception
            -- An error in the archive, such as a full disk, is only a warning, because promoting
            -- and reaping must go on.
            when others then
                o_archived := 0;
                if sqlstate = '55P03' then
                    o_locked := o_locked || 'archive'::text;
                end if;
                raise warning 'rowq: archive of queue % failed: % %',
                    p_queue.queue_name, sqlstate, sqlerrm;
        end;
    end if;

    -- A queue without a rate_limit may have notes from a time when it had one, so look for them
    -- once a minute.
    if p_queue.rate_limit > 0 or v_may_sweep then
        perform rowq.internal_purge_started(
            p_queue.part_id,
            case when p_queue.rate_limit > 0 then p_queue.rate_seconds else 0 end,
            10 * p_batch_size, p_frontiers[3], v_writers
        );
    end if;

    -- The same holds for results and history, but that they have lanes once some were purged. More
    -- than a batch of each goes only until p_until, and results leave history half of that time. An
    -- error is a warning, as in the archive.
    if 'result' <> all (p_locked) and (
        p_queue.result_seconds > 0 or v_may_sweep
        or exists (
            select 1
            from rowq.floor f
            where f.part_id = p_queue.part_id
              and f.lane = -7 /* result */
        )
    ) then
        begin
            v_started := clock_timestamp();
            o_purged := o_purged + rowq.internal_purge_results(
                p_queue.part_id, p_queue.result_seconds, p_batch_size,
                v_started + (p_until - v_started) / 2, p_frontiers[3], v_writers
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
            where f.part_id = p_queue.part_id
              and f.lane = -8 /* history */
        )
    ) then
        begin
            o_purged := o_purged + rowq.internal_purge_history(
                p_queue.part_id, p_queue.history_days, p_batch_size, p_until, p_frontiers[3],
                v_writers
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
        perform rowq.internal_move_floor(p_queue.part_id, -2::smallint /* delayed */, true);
    end if;
    loop
        select f.lane into v_lane
        from rowq.floor f
        where f.part_id = p_queue.part_id
          and f.lane > v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        exit when not found;
        perform rowq.internal_move_floor(
            p_queue.part_id, v_lane, false, true, p_frontiers[1], v_writers
        );
    end loop;
end;
$$;
