-- Floors: where the live rows of a lane begin.
--
-- Deleted rows stay in an index while a snapshot can see them. A reader therefore starts at the
-- floor of its lane and skips them. maintain rescans from below, finds rows that were committed
-- late and lowers the floor: such a message waits for a later maintain, normally the next, and is
-- never lost. A lane below 0 is another table that is read from its low end, such as claim,
-- delayed or expiry. After a slow scan a lane backs off for 50 times the duration of the scan.
--
-- A floor is a row of floor. Rows are inserted and deleted, never updated; a newer one has a lower
-- generation. It holds start_seq, where a dequeue starts; safe_seq, below which no open
-- transaction can add a row; and pending_seq, the next safe_seq. Dequeues move start_seq past the
-- rows they have leased, now and then.
--
--   enqueue, enqueue_batch, push_ready, ... -> open_lanes -> next_sweep
--   dequeue_fast, promote, pop_ready, ... -> move_floor -> is_past, first_key, next_sweep
--   cancel, cancel_many, list_claims, ... -> read_safe_floor
--   maintain_queue -> is_rescan_due -> is_past
--   promote, await_predecessor, has_unfinished, ... -> read_floor
--
-- Writes floor. Only reads claim, delayed, expiry, finished, history, ready, deferred, result,
-- started.

create or replace function rowq.internal_open_lanes(p_queue_id integer, p_lanes smallint[])
returns void
language plpgsql
as $$
-- purpose   Make lanes known to dequeue before the first row is inserted.
-- locks     none that block other producers
begin
    -- Each producer that does not see the lane inserts its own row, with its transaction id as
    -- generation. So no producer waits for another's open transaction, and a rollback removes only
    -- its own row. The scalar subquery reads the lane's newest row in key order; "not exists" would
    -- become a join that reads all dead rows of the lane.
    insert into rowq.floor (
        queue_id, lane, generation, start_seq, safe_seq, pending_seq, pending_xid, rescan_at,
        sweep_at
    )
    select p_queue_id, l.lane, pg_current_xact_id()::text::bigint, 0, 0, 0, '0',
           clock_timestamp(), rowq.internal_next_sweep(p_queue_id, interval '1 minute')
    from (select distinct u.lane from unnest(p_lanes) u (lane)) l
    where (
        select f.lane
        from rowq.floor f
        where f.queue_id = p_queue_id
          and f.lane = l.lane
        order by f.queue_id, f.lane, f.generation
        limit 1
    ) is null
    on conflict do nothing;
end;
$$;

create or replace function rowq.internal_move_floor(
    p_queue_id    integer,
    p_lane        smallint,
    p_force       boolean default false,
    p_rescan      boolean default false,
    p_pending_seq bigint default null,
    p_pending_xid xid8 default null,
    p_cap         bigint default null,
    p_started     timestamp with time zone default clock_timestamp(),
    p_sweep_interval interval default '1 minute'
)
returns void
language plpgsql
as $$
-- purpose   Insert a new floor row for a lane if its floor has moved far enough.
-- locks     new floor rows; the previous row, skipped if locked
#variable_conflict use_column
declare
    -- Do not insert a row for a shorter step. The unit is numbers for messages, claims and finished
    -- messages, microseconds for the other tables.
    c_min_step    constant bigint := case
        when p_lane >= 0 or p_lane in (-1 /* claim */, -3 /* finished */) then 400
        else 60000000
    end;
    c_factor      constant integer := 50;
    -- At one row per second from maintain, generation reaches the end of a bigint after 58 years.
    c_step_of_maintain constant bigint := 5000000000;
    c_slow_scan   constant interval := interval '20 milliseconds';
    v_now         bigint;
    v_snapshot    pg_snapshot;
    v_floor       rowq.floor;
    v_first       bigint;
    v_seq         bigint;
    v_safe        bigint;
    v_jumped      boolean;
    v_sweep       boolean;
    v_rescan      boolean;
    v_resolved    boolean;
    v_is_moved    boolean := false;
    v_took        interval;
    v_generation  bigint;
    v_old         bigint;
begin
    -- The pending and safe starts compare snapshots of several statements; only READ COMMITTED
    -- takes a new snapshot for each.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return;
    end if;

    v_now := rowq.internal_newest_number(p_lane);
    select pg_current_snapshot() into v_snapshot;

    select f.queue_id, f.lane, f.generation, f.start_seq, f.safe_seq, f.pending_seq, f.pending_xid,
           f.rescan_at, f.sweep_at
    into v_floor
    from rowq.floor f
    where f.queue_id = p_queue_id
      and f.lane = p_lane
    order by f.queue_id, f.lane, f.generation
    limit 1;

    if not found then
        v_floor := row(p_queue_id, p_lane, 0, 0, 0, 0, '0', p_started, p_started);
    end if;

    -- A sequence behind a floor did not give out its numbers: this server has taken over, and
    -- no session has called after_failover.
    if p_rescan
       and (p_lane >= 0 or p_lane in (-1 /* claim */, -3 /* finished */))
       and v_now < greatest(v_floor.pending_seq, v_floor.start_seq - 1) then
        if exists (select from rowq.internal_advance_numbers(false)) then
            raise warning 'rowq: numbers were behind those in use, as after a failover; '
                'message and claim numbers continue a thousand million higher';
        end if;
    end if;

    -- Ignore the floor row and start from 0 if numbers went backwards (a restore, a failover,
    -- setval, or briefly the clock), or if floor comes from another server.
    v_jumped := v_now < v_floor.pending_seq
        or v_now < v_floor.start_seq - 1
        or coalesce(p_pending_xid < v_floor.pending_xid, false);
    v_sweep := v_jumped or (p_rescan and rowq.internal_is_past(v_floor.sweep_at));
    v_rescan := v_sweep or (p_rescan and rowq.internal_is_past(v_floor.rescan_at));

    v_first := rowq.internal_first_key(
        p_queue_id,
        p_lane,
        case
            when v_sweep then 0
            when v_rescan then v_floor.safe_seq
            else v_floor.start_seq
        end
    );
    v_resolved := not v_jumped and v_rescan and v_floor.pending_xid <= pg_snapshot_xmin(v_snapshot);

    -- start_seq may move up to p_cap, past the rows a dequeue has leased, or to pending_seq once no
    -- transaction can add a row below it. So it passes an uncommitted row only if a newer row has
    -- been delivered. Without p_cap, a lane below 0 may move up to the newest number, because no
    -- caller waits for its rows.
    v_seq := least(
        v_first,
        case
            when v_jumped or p_cap is null and p_lane < 0 then v_now + 1
            else greatest(
                v_floor.start_seq,
                p_cap,
                case when v_resolved then v_floor.pending_seq + 1 end
            )
        end
    );

    if v_jumped then
        v_floor.safe_seq := 0;
        v_floor.pending_seq := 0;
        v_floor.pending_xid := '0';
    elsif v_resolved then
        -- Every writer that could have a number up to pending_seq had ended before v_first was
        -- read, so no row can appear up to pending_seq any more.
        v_safe := greatest(v_floor.safe_seq, least(v_first, v_floor.pending_seq + 1));
        v_is_moved := v_safe - v_floor.safe_seq > c_min_step;
        v_floor.safe_seq := v_safe;
        -- Set a new pending start. p_pending_xid was assigned after p_pending_seq was read, so
        -- every transaction with a number up to p_pending_seq has an older id. (The xmax of a
        -- snapshot would not do: the newest running transactions have ids beyond it.)
        if p_pending_xid is not null then
            v_is_moved := v_is_moved or p_pending_seq - v_floor.pending_seq > c_min_step;
            v_floor.pending_seq := p_pending_seq;
            v_floor.pending_xid := p_pending_xid;
        end if;
    end if;
    if v_first < v_floor.safe_seq then
        v_floor.safe_seq := v_first;
    end if;

    v_took := clock_timestamp() - p_started;
    if not (v_is_moved
            or v_sweep
            or v_seq < v_floor.start_seq
            or v_seq - v_floor.start_seq > case when p_force then 0 else c_min_step end
            or v_took > c_slow_scan) then
        return;
    end if;

    -- After a slow scan over dead rows, back off.
    if v_rescan and v_took > c_slow_scan then
        v_floor.rescan_at := clock_timestamp() + least(v_took * c_factor, interval '1 hour');
    end if;
    if v_sweep then
        v_floor.sweep_at := greatest(
            rowq.internal_next_sweep(p_queue_id, p_sweep_interval),
            clock_timestamp() + least(v_took * c_factor, interval '1 hour')
        );
    end if;

    -- Skip a random distance, so that no session waits for the same generation in an open
    -- transaction. The step of maintain is longer than many steps of dequeue together, so that its
    -- row, with the new pending start, stays the newest even if dequeues have inserted in between.
    v_generation := least(v_floor.generation, 0) - 1 - (random() * 1000000)::bigint
        - case when p_rescan then c_step_of_maintain else 0 end;
    insert into rowq.floor (
        queue_id, lane, generation, start_seq, safe_seq, pending_seq, pending_xid, rescan_at,
        sweep_at
    )
    values (
        p_queue_id, p_lane, v_generation, v_seq, v_floor.safe_seq, v_floor.pending_seq,
        v_floor.pending_xid,
        v_floor.rescan_at, v_floor.sweep_at
    )
    on conflict do nothing;

    -- Delete only the previous row: many dead rows may lie beyond it. A sweep deletes all older
    -- rows, including those that were locked before.
    for v_old in
        select f.generation
        from rowq.floor f
        where f.queue_id = p_queue_id
          and f.lane = p_lane
          and f.generation >= v_floor.generation
          and f.generation <= case
              when v_sweep then 9223372036854775807 else v_floor.generation
          end
        for update skip locked
    loop
        delete from rowq.floor f
        where f.queue_id = p_queue_id
          and f.lane = p_lane
          and f.generation = v_old;
    end loop;
end;
$$;

create or replace function rowq.internal_next_sweep(p_queue_id integer, p_interval interval)
returns timestamp with time zone
language plpgsql
as $$
-- purpose   Return when the lanes of a queue are swept next, if they are swept in this interval.
begin
    -- All lanes of a queue are swept at once, and each queue at a second of its own: 371 has no
    -- divisor in common with the seconds of 1 or 10 minutes.
    return p_interval + date_bin(
        p_interval,
        clock_timestamp(),
        timestamp with time zone 'epoch' + p_queue_id % 600 * 371 * interval '1 second'
    );
end;
$$;

create or replace function rowq.internal_is_past(p_time timestamp with time zone)
returns boolean
language plpgsql
as $$
-- purpose   Return whether a time has come, or is so far ahead that the clock must have been wrong.
begin
    return p_time <= clock_timestamp() or p_time > clock_timestamp() + interval '2 hours';
end;
$$;

create or replace function rowq.internal_first_key(
    p_queue_id integer,
    p_lane     smallint,
    p_from     bigint
)
returns bigint
language plpgsql
as $$
-- purpose   Return the first live key of a lane from p_from on; null if there is none.
declare
    v_key bigint;
begin
    if p_lane >= 0 then
        select r.seq into v_key
        from rowq.ready r
        where r.queue_id = p_queue_id
          and r.lane = p_lane
          and r.seq >= p_from
        order by r.queue_id, r.lane, r.seq
        limit 1;
    elsif p_lane = -1 /* claim */ then
        select c.claim_id into v_key
        from rowq.claim c
        where c.queue_id = p_queue_id
          and c.claim_id >= p_from
        order by c.queue_id, c.claim_id
        limit 1;
    elsif p_lane = -2 /* delayed */ then
        select extract(epoch from d.due_at) * 1000000 into v_key
        from rowq.delayed d
        where d.queue_id = p_queue_id
          and d.due_at >= rowq.internal_from_microseconds(p_from)
        order by d.queue_id, d.due_at, d.message_id
        limit 1;
    elsif p_lane = -5 /* started */ then
        select extract(epoch from s.started_at) * 1000000 into v_key
        from rowq.started s
        where s.queue_id = p_queue_id
          and s.started_at >= rowq.internal_from_microseconds(p_from)
        order by s.queue_id, s.started_at, s.claim_id
        limit 1;
    elsif p_lane = -6 /* expiry */ then
        select extract(epoch from e.expires_at) * 1000000 into v_key
        from rowq.expiry e
        where e.queue_id = p_queue_id
          and e.expires_at >= rowq.internal_from_microseconds(p_from)
        order by e.queue_id, e.expires_at, e.expiry_id
        limit 1;
    elsif p_lane = -7 /* result */ then
        select extract(epoch from r.finished_at) * 1000000 into v_key
        from rowq.result r
        where r.queue_id = p_queue_id
          and r.finished_at >= rowq.internal_from_microseconds(p_from)
        order by r.queue_id, r.finished_at
        limit 1;
    elsif p_lane = -8 /* history */ then
        select extract(epoch from h.ended_at) * 1000000 into v_key
        from rowq.history h
        where h.queue_id = p_queue_id
          and h.ended_at >= rowq.internal_from_microseconds(p_from)
        order by h.queue_id, h.ended_at, h.message_id, h.claim_id
        limit 1;
    elsif p_lane = -3 /* finished */ then
        select f.finish_id into v_key
        from rowq.finished f
        where f.queue_id = p_queue_id
          and f.finish_id >= p_from
        order by f.queue_id, f.finish_id
        limit 1;
    else
        select extract(epoch from r.due_at) * 1000000 into v_key
        from rowq.deferred r
        where r.queue_id = p_queue_id
          and r.due_at >= rowq.internal_from_microseconds(p_from)
        order by r.queue_id, r.due_at, r.deferred_id
        limit 1;
    end if;
    return v_key;
end;
$$;

create or replace function rowq.internal_read_safe_floor(p_queue_id integer, p_lane smallint)
returns bigint
language plpgsql
stable
as $$
-- purpose   Return the safe start of a lane; no row appears below it any more.
declare
    v_safe bigint;
begin
    select f.safe_seq into v_safe
    from rowq.floor f
    where f.queue_id = p_queue_id
      and f.lane = p_lane
    order by f.queue_id, f.lane, f.generation
    limit 1;
    return coalesce(v_safe, 0);
end;
$$;

create or replace function rowq.internal_is_rescan_due(
    p_queue_id integer,
    p_lane     smallint,
    p_what     text
)
returns boolean
language plpgsql
as $$
-- purpose   Return whether a rescan or sweep of a lane is due, as it is if the lane has no floor.
declare
    v_at timestamp with time zone;
begin
    select case p_what when 'sweep' then f.sweep_at else f.rescan_at end into v_at
    from rowq.floor f
    where f.queue_id = p_queue_id
      and f.lane = p_lane
    order by f.queue_id, f.lane, f.generation
    limit 1;
    return v_at is null or rowq.internal_is_past(v_at);
end;
$$;

create or replace function rowq.internal_read_floor(p_queue_id integer, p_lane smallint)
returns bigint
language plpgsql
stable
as $$
-- purpose   Return where readers of a lane start.
declare
    v_seq bigint;
begin
    select f.start_seq into v_seq
    from rowq.floor f
    where f.queue_id = p_queue_id
      and f.lane = p_lane
    order by f.queue_id, f.lane, f.generation
    limit 1;
    return coalesce(v_seq, 0);
end;
$$;
