create or replace function rowq.internal_move_floor(
    p_part_id  integer,
    p_lane     smallint,
    p_force    boolean default false,
    p_rescan   boolean default false,
    p_frontier bigint default null,
    p_writers  xid8 default null,
    p_cap      bigint default null,
    p_started  timestamp with time zone default clock_timestamp()
)
returns void
language plpgsql
as $$
-- routine   internal_move_floor
-- purpose   Add a ledger row for a lane when its floor has moved far enough to be worth one.
-- promise   P13 P14
-- locks     new floor rows; the one before, passed over when locked
-- differs   only engines whose readers walk dead rows need it
#variable_conflict use_column
declare
    -- A step that is shorter than this is not worth a new row. The unit is numbers for messages,
    -- claims and finished messages, and microseconds for the other tables.
    c_worth_a_row constant bigint := case
        when p_lane >= 0 or p_lane in (-1 /* claim */, -3 /* finished */) then 400
        else 60000000
    end;
    c_duty        constant integer := 50;
    -- At one row of maintain a second, generation reaches the end of a bigint after 58 years.
    c_step_of_maintain constant bigint := 5000000000;
    c_long_walk   constant interval := interval '20 milliseconds';
    v_now         bigint;
    v_snapshot    pg_snapshot;
    v_floor       rowq.floor;
    v_first       bigint;
    v_seq         bigint;
    v_jumped      boolean;
    v_sweep       boolean;
    v_rescan      boolean;
    v_resolved    boolean;
    v_marked      boolean := false;
    v_took        interval;
    v_generation  bigint;
    v_old         bigint;
begin
    -- The marks compare snapshots of several statements, and only read committed takes a new
    -- snapshot for each statement.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return;
    end if;

    v_now := rowq.internal_newest_number(p_lane);
    select pg_current_snapshot() into v_snapshot;

    select f.part_id, f.lane, f.generation, f.seq, f.safe, f.frontier, f.writers,
           f.rescan_at, f.sweep_at
    into v_floor
    from rowq.floor f
    where f.part_id = p_part_id
      and f.lane = p_lane
    order by f.part_id, f.lane, f.generation
    limit 1;

    if not found then
        v_floor := row(p_part_id, p_lane, 0, 0, 0, 0, '0', p_started, p_started);
    end if;

    -- Trust no floor row and begin from 0 if numbers ran backwards (a restore, a failover, setval,
    -- or for moments the clock), or if the ledger comes from another server.
    v_jumped := v_now < v_floor.frontier
        or v_now < v_floor.seq - 1
        or coalesce(p_writers < v_floor.writers, false);
    v_sweep := v_jumped or (p_rescan and rowq.internal_is_past(v_floor.sweep_at));
    v_rescan := v_sweep or (p_rescan and rowq.internal_is_past(v_floor.rescan_at));

    v_first := rowq.internal_first_key(
        p_part_id,
        p_lane,
        case
            when v_sweep then 0
            when v_rescan then v_floor.safe
            else v_floor.seq
        end
    );
    v_resolved := not v_jumped and v_rescan and v_floor.writers <= pg_snapshot_xmin(v_snapshot);

    -- seq may move up to what a dequeue has taken (p_cap), or to frontier once no transaction can
    -- add a row below it. So seq passes a row that is not committed yet only where a newer row has
    -- been delivered. Without p_cap, a lane below 0 may move up to the newest number, because
    -- nobody waits for its rows.
    v_seq := least(
        v_first,
        case
            when v_jumped or p_cap is null and p_lane < 0 then v_now + 1
            else greatest(
                v_floor.seq,
                p_cap,
                case when v_resolved then v_floor.frontier + 1 end
            )
        end
    );

    if v_jumped then
        v_floor.safe := 0;
        v_floor.frontier := 0;
        v_floor.writers := '0';
    elsif v_resolved then
        -- Every writer that could have a number up to frontier had ended before v_first was read,
        -- so nothing can appear up to frontier any more.
        v_floor.safe := greatest(v_floor.safe, least(v_first, v_floor.frontier + 1));
        -- Take a new mark. p_writers is a transaction id that was given out after p_frontier was
        -- read, so every transaction that has a number up to p_frontier has an older id. (The xmax
        -- of a snapshot would not do, because the newest running transactions have ids beyond it.)
        if p_writers is not null then
            v_marked := p_frontier - v_floor.frontier > c_worth_a_row;
            v_floor.frontier := p_frontier;
            v_floor.writers := p_writers;
        end if;
    end if;
    if v_first < v_floor.safe then
        v_floor.safe := v_first;
    end if;

    v_took := clock_timestamp() - p_started;
    if not (v_marked
            or v_sweep
            or v_seq < v_floor.seq
            or v_seq - v_floor.seq > case when p_force then 0 else c_worth_a_row end
            or v_took > c_long_walk) then
        return;
    end if;

    -- After a long walk over dead rows, rest for fifty times as long as it took.
    if v_rescan and v_took > c_long_walk then
        v_floor.rescan_at := clock_timestamp() + least(v_took * c_duty, interval '1 hour');
    end if;
    if v_sweep then
        v_floor.sweep_at := clock_timestamp()
            + least(greatest(interval '1 minute', v_took * c_duty), interval '1 hour');
    end if;

    -- The new generation is at a random distance from the last one, so that no session waits for a
    -- row of the same generation that a long transaction has added and not committed. A step of
    -- maintain is longer than many steps of dequeue together, so that its row, with the new mark,
    -- stays the newest whatever dequeues have added since maintain looked.
    v_generation := least(v_floor.generation, 0) - 1 - (random() * 1000000)::bigint
        - case when p_rescan then c_step_of_maintain else 0 end;
    insert into rowq.floor (
        part_id, lane, generation, seq, safe, frontier, writers, rescan_at, sweep_at
    )
    values (
        p_part_id, p_lane, v_generation, v_seq, v_floor.safe, v_floor.frontier, v_floor.writers,
        v_floor.rescan_at, v_floor.sweep_at
    )
    on conflict do nothing;

    -- Delete only the row before the new one, because many dead rows may lie beyond it. A sweep
    -- deletes all older rows, so that those which were locked go too.
    for v_old in
        select f.generation
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = p_lane
          and f.generation >= v_floor.generation
          and f.generation <= case
              when v_sweep then 9223372036854775807 else v_floor.generation
          end
        for update skip locked
    loop
        delete from rowq.floor f
        where f.part_id = p_part_id
          and f.lane = p_lane
          and f.generation = v_old;
    end loop;
end;
$$;
