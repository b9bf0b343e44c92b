procedure internal_rescan_floors(
    p_part_id     in number,
    p_has_recheck out boolean,
    p_has_started out boolean,
    p_has_expiry  out boolean,
    p_has_results out boolean,
    p_has_history out boolean
)
is
-- routine   internal_rescan_floors
-- purpose   Look for the first live row of every lane from its very start, and put the floors right. p_has_recheck and the others say whether these tables may have rows.
-- promise   P13 P14
-- locks     rows of lanes, passing over locked ones
-- differs   only maintain moves floors: dead rows cost nothing here, emptied index blocks little
    -- Times are in microseconds. A look that takes longer than c_short_walk has walked over emptied
    -- blocks. After one longer than c_long_walk the lane rests.
    c_short_walk constant number := 300;
    c_long_walk constant number := 20000;
    c_not_yet_committed constant number := 500000;
    type t_due_lane is record (
        lane       rowq_lane.lane%type,
        floor_seq  rowq_lane.floor_seq%type,
        is_open    rowq_lane.is_open%type,
        is_resting number(1)
    );
    type t_due_lanes is table of t_due_lane index by pls_integer;
    v_now      constant timestamp(6) := sys_extract_utc(systimestamp);
    v_lanes    t_due_lanes;
    v_started  timestamp(6);
    v_first    number;
    v_latest   number;
    v_worth_it number;
    v_took     number;
    -- The lanes of messages before v_next_lane were found empty; it begins at v_next_seq. A look
    -- that passes over empty lanes ends at v_last, because the lane behind it rests.
    v_next_lane pls_integer;
    v_next_seq  number;
    v_last      pls_integer;
    v_is_slow   boolean := false;
begin
    select l.lane, l.floor_seq, l.is_open,
           case when l.check_after > v_now then 1 else 0 end as is_resting
    bulk collect into v_lanes
    from rowq_lane l
    where l.part_id = p_part_id
      and (
          l.check_after <= v_now
          or l.lane between -8 /* history */ and -4 /* deferred */
              and l.lane <> -5 /* started */
      )
      -- Only a queue that has left a token, or a hint, has rows there.
      and (
          l.lane <> -4 /* deferred */
          or l.is_open = 1
          or exists (select null from rowq_recheck r where r.part_id = p_part_id)
      )
      -- Only a queue that has a rate_limit, or had one, has rows there.
      and (
          l.lane <> -5 /* started */
          or exists (select null from rowq_started s where s.part_id = p_part_id)
      )
      -- Only a queue that has messages which expire, or had some, has rows there.
      and (
          l.lane <> -6 /* expiry */
          or exists (select null from rowq_expiry e where e.part_id = p_part_id)
      )
      -- Only a queue that has result_seconds, or had some, has rows there.
      and (
          l.lane <> -7 /* result */
          or l.check_after > v_now
          or exists (
              select /*+ index(r rowq_result_finished_ix) */ null
              from rowq_result r
              where r.part_id = p_part_id
          )
      )
      -- Only a queue that has history_days, or had some, has rows there.
      and (
          l.lane <> -8 /* history */
          or l.check_after > v_now
          or exists (
              select /*+ index(h rowq_history_pk) */ null
              from rowq_history h
              where h.part_id = p_part_id
          )
      )
    order by l.part_id, l.lane;

    p_has_recheck := false;
    p_has_started := false;
    p_has_expiry := false;
    p_has_results := false;
    p_has_history := false;
    for i in 1 .. v_lanes.count loop
        p_has_recheck := p_has_recheck or v_lanes(i).lane = -4 /* deferred */;
        p_has_started := p_has_started or v_lanes(i).lane = -5 /* started */;
        p_has_expiry := p_has_expiry or v_lanes(i).lane = -6 /* expiry */;
        p_has_results := p_has_results or v_lanes(i).lane = -7 /* result */;
        p_has_history := p_has_history or v_lanes(i).lane = -8 /* history */;
        -- What is purged or expires goes on from its floor also while nobody moves that.
        continue when v_lanes(i).lane between -8 /* history */ and -6 /* expiry */
            and v_lanes(i).is_resting = 1;
        v_started := sys_extract_utc(systimestamp);
        v_first := null;
        if v_lanes(i).lane < 0 or v_is_slow then
            v_first := internal_first_key(p_part_id, v_lanes(i).lane, 0);
        else
            if v_next_lane is null or v_next_lane < v_lanes(i).lane then
                v_last := i;
                while v_last < v_lanes.count
                    and v_lanes(v_last + 1).lane = v_lanes(v_last).lane + 1
                loop
                    v_last := v_last + 1;
                end loop;
                internal_first_lane(
                    p_part_id, v_lanes(i).lane, v_lanes(v_last).lane, v_next_lane, v_next_seq
                );
            end if;
            if v_next_lane = v_lanes(i).lane then
                v_first := v_next_seq;
            end if;
        end if;
        v_took := internal_microseconds(sys_extract_utc(systimestamp))
            - internal_microseconds(v_started);
        if not v_is_slow and v_next_lane > v_lanes(i).lane and v_took > c_short_walk then
            -- Emptied blocks were walked over, and nobody knows of which lane: look at this lane
            -- alone, and at each one behind it.
            v_is_slow := true;
            v_started := sys_extract_utc(systimestamp);
            v_first := internal_first_key(p_part_id, v_lanes(i).lane, 0);
            v_took := internal_microseconds(sys_extract_utc(systimestamp))
                - internal_microseconds(v_started);
        end if;

        if (v_lanes(i).lane >= 0 or v_lanes(i).lane = -4 /* deferred */)
           and v_first is not null
           and v_lanes(i).is_open = 0
        then
            -- The lane has messages but is closed: the transaction that was to open it has rolled
            -- back, or is still open.
            internal_open_lanes(p_part_id, v_lanes(i).lane);
        end if;
        if v_lanes(i).lane in (-1 /* claim */, -3 /* finished */) then
            v_first := coalesce(v_first, v_lanes(i).floor_seq);
            v_worth_it := 400;
        elsif v_first is null and v_took <= c_short_walk then
            -- The lane is empty and the walk was short, so a dequeue loses no time before its
            -- floor. Leave the floor, so that an idle queue writes nothing.
            v_first := v_lanes(i).floor_seq;
            v_worth_it := 0;
        else
            -- The floor stays half a second behind now, because messages of the last moments may
            -- not be committed yet.
            v_latest := internal_microseconds(v_started) - c_not_yet_committed;
            v_first := least(coalesce(v_first, v_latest), v_latest);
            v_worth_it := case
                when v_lanes(i).lane between -8 /* history */ and -6 /* expiry */ then 60000000
                else 1000000
            end;
        end if;
        if v_took > c_short_walk then
            v_worth_it := 0;
        end if;
        if v_first < v_lanes(i).floor_seq
           or (
               v_first > v_lanes(i).floor_seq + v_worth_it
               and (v_lanes(i).is_open = 1 or v_lanes(i).lane < 0)
           ) then
            internal_move_floor(p_part_id, v_lanes(i).lane, v_lanes(i).floor_seq, v_first);
        end if;

        if v_took > c_long_walk then
            internal_rest_lane(p_part_id, v_lanes(i).lane, v_took);
        end if;
    end loop;
end internal_rescan_floors;
