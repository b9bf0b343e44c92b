-- Floors: where the live rows of a lane begin.
--
-- Deleted rows cost a reader nothing here, but the emptied blocks at the left end of an index are
-- scanned until they are reused. A reader therefore starts at the floor of its lane. maintain
-- rescans from the very start, finds rows that were committed late and lowers the floor: such a
-- message waits for a later maintain, normally the next, and is never lost. A lane below 0 is
-- another table that is read from its low end, such as claim, delayed or expiry. After a slow scan
-- a lane backs off for 50 times the duration of the scan.
--
-- A lane is a row of rowq_lane, and only maintain moves its floor, at most to half a second before
-- now.
--
--   list_delayed, promote, run_deferred_groups, ... -> read_floor
--   maintain_archive -> first_key
--   push_deferred, defer -> open_lanes
--   store -> open_lanes_for -> open_lanes
--   maintain_queue -> rescan_floors -> first_key, first_lane, open_lanes, move_floor, back_off_lane
--
-- Writes lane. Only reads claim, delayed, expiry, finished, history, ready, deferred, result,
-- started.

function internal_read_floor(p_queue_id in number, p_lane in number)
return number
is
-- purpose   Return where the live rows of a lane begin; 0 if the lane does not exist.
    v_floor rowq_lane.floor_seq%type;
begin
    select coalesce(max(l.floor_seq), 0) into v_floor
    from rowq_lane l
    where l.queue_id = p_queue_id
      and l.lane = p_lane;
    return v_floor;
end internal_read_floor;

function internal_first_key(p_queue_id in number, p_lane in number, p_from in number)
return number
is
-- purpose   Return the first live key of a lane from p_from on; null if there is none.
    v_since  constant timestamp(6) :=
        internal_from_microseconds(
            case when p_lane in (-1 /* claim */, -3 /* finished */) then 0 else p_from end
        );
    v_first  number;
    v_time   timestamp(6);
    -- Each cursor is ordered and fetched once, so the scan ends at the first row.
    cursor claims is
        select /*+ index_rs_asc(c rowq_claim_pk) */ c.claim_id
        from rowq_claim c
        where c.queue_id = p_queue_id
          and c.claim_id >= p_from
        order by c.queue_id, c.claim_id;
    cursor delayed_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.due_at
        from rowq_delayed d
        where d.queue_id = p_queue_id
          and d.due_at >= v_since
        order by d.queue_id, d.due_at, d.message_id;
    cursor finished_rows is
        select /*+ index_rs_asc(f rowq_finished_pk) */ f.finish_id
        from rowq_finished f
        where f.queue_id = p_queue_id
          and f.finish_id >= p_from
        order by f.queue_id, f.finish_id, f.message_id;
    cursor deferred_rows is
        select /*+ index_rs_asc(r rowq_deferred_pk) */ r.due_at
        from rowq_deferred r
        where r.queue_id = p_queue_id
          and r.due_at >= v_since
        order by r.queue_id, r.due_at, r.deferred_id;
    cursor started_rows is
        select /*+ index_rs_asc(s rowq_started_pk) */ s.started_at
        from rowq_started s
        where s.queue_id = p_queue_id
          and s.started_at >= v_since
        order by s.queue_id, s.started_at, s.claim_id;
    cursor expiry_rows is
        select /*+ index_rs_asc(e rowq_expiry_pk) */ e.expires_at
        from rowq_expiry e
        where e.queue_id = p_queue_id
          and e.expires_at >= v_since
        order by e.queue_id, e.expires_at, e.expiry_id;
    cursor result_rows is
        select /*+ index_rs_asc(r rowq_result_finished_ix) */ r.finished_at
        from rowq_result r
        where r.queue_id = p_queue_id
          and r.finished_at >= v_since
        order by r.queue_id, r.finished_at;
    cursor history_rows is
        select /*+ index_rs_asc(h rowq_history_pk) */ h.ended_at
        from rowq_history h
        where h.queue_id = p_queue_id
          and h.ended_at >= v_since
        order by h.queue_id, h.ended_at, h.message_id, h.claim_id;
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.seq
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.lane = p_lane
          and r.seq >= p_from
        order by r.queue_id, r.lane, r.seq, r.message_id;
begin
    case p_lane
        when -1 /* claim */ then
            open claims;
            fetch claims into v_first;
            close claims;
        when -2 /* delayed */ then
            open delayed_rows;
            fetch delayed_rows into v_time;
            close delayed_rows;
            v_first := internal_microseconds(v_time);
        when -3 /* finished */ then
            open finished_rows;
            fetch finished_rows into v_first;
            close finished_rows;
        when -4 /* deferred */ then
            open deferred_rows;
            fetch deferred_rows into v_time;
            close deferred_rows;
            v_first := internal_microseconds(v_time);
        when -5 /* started */ then
            open started_rows;
            fetch started_rows into v_time;
            close started_rows;
            v_first := internal_microseconds(v_time);
        when -6 /* expiry */ then
            open expiry_rows;
            fetch expiry_rows into v_time;
            close expiry_rows;
            v_first := internal_microseconds(v_time);
        when -7 /* result */ then
            open result_rows;
            fetch result_rows into v_time;
            close result_rows;
            v_first := internal_microseconds(v_time);
        when -8 /* history */ then
            open history_rows;
            fetch history_rows into v_time;
            close history_rows;
            v_first := internal_microseconds(v_time);
        else
            open ready_rows;
            fetch ready_rows into v_first;
            close ready_rows;
    end case;
    return v_first;
end internal_first_key;

procedure internal_open_lanes(p_queue_id in number, p_lane in number)
is
-- purpose   Open a lane and its front companion for dequeue.
-- locks     the rows of the two lanes, skipping locked ones
    v_row_ids t_row_ids;
    -- Skip locked rows, so that no producer waits: their session is usually opening the lanes. If
    -- the lanes stay closed, the next maintain opens them.
    cursor closed_lanes is
        select l.rowid
        from rowq_lane l
        where l.queue_id = p_queue_id
          and l.lane in (p_lane, trunc(p_lane / 2) * 2)
          and l.is_open = 0
        for update skip locked;
begin
    open closed_lanes;
    fetch closed_lanes bulk collect into v_row_ids limit 2;
    close closed_lanes;
    forall i in 1 .. v_row_ids.count
        update rowq_lane l
        set l.is_open = 1
        where l.rowid = v_row_ids(i);
end internal_open_lanes;

procedure internal_open_lanes_for(p_queue_id in number, p_new in t_new_messages)
is
-- purpose   Open the lanes of new messages for dequeue.
-- locks     as internal_open_lanes, if a lane was never used
    -- The lane of the default priority is open from the start.
    c_default_lane constant pls_integer := 11;
    v_lanes t_lanes;
    v_open  t_numbers;
begin
    v_open(c_default_lane) := 1;
    for i in 1 .. p_new.count loop
        if not v_open.exists(p_new(i).lane) then
            if v_lanes.count = 0 then
                v_lanes := internal_open_lanes_of(p_queue_id);
                for l in 1 .. v_lanes.count loop
                    v_open(v_lanes(l).lane) := 1;
                end loop;
            end if;
            if not v_open.exists(p_new(i).lane) then
                internal_open_lanes(p_queue_id, p_new(i).lane);
                v_open(p_new(i).lane) := 1;
            end if;
        end if;
    end loop;
end internal_open_lanes_for;

procedure internal_rescan_floors(
    p_queue_id     in number,
    p_has_deferred out boolean,
    p_has_started  out boolean,
    p_has_expiry   out boolean,
    p_has_results  out boolean,
    p_has_history  out boolean
)
is
-- purpose   Find the first live row of every lane, correct its floor; return which tables may have rows.
-- locks     rows of lane, skipping locked ones
-- differs   only maintain moves floors: dead rows cost nothing here, emptied index blocks little
    -- Times are in microseconds. A scan longer than c_fast_scan has read emptied blocks. After one
    -- longer than c_slow_scan the lane backs off.
    c_fast_scan constant number := 300;
    c_slow_scan constant number := 20000;
    c_not_yet_committed constant number := 500000;
    type t_due_lane is record (
        lane       rowq_lane.lane%type,
        floor_seq  rowq_lane.floor_seq%type,
        is_open    rowq_lane.is_open%type,
        is_backing_off number(1)
    );
    type t_due_lanes is table of t_due_lane index by pls_integer;
    v_now      constant timestamp(6) := sys_extract_utc(systimestamp);
    v_lanes    t_due_lanes;
    v_started  timestamp(6);
    v_first    number;
    v_latest   number;
    v_min_step number;
    v_took     number;
    -- The lanes before v_next_lane are empty; it begins at v_next_seq. A scan over empty lanes ends
    -- at v_last, because the next lane backs off.
    v_next_lane pls_integer;
    v_next_seq  number;
    v_last      pls_integer;
    v_is_slow   boolean := false;
begin
    select l.lane, l.floor_seq, l.is_open,
           case when l.check_after > v_now then 1 else 0 end as is_backing_off
    bulk collect into v_lanes
    from rowq_lane l
    where l.queue_id = p_queue_id
      and (
          l.check_after <= v_now
          or l.lane between -8 /* history */ and -4 /* deferred */
              and l.lane <> -5 /* started */
      )
      -- Skip the tables of features that the queue has never used.
      and (
          l.lane <> -4 /* deferred */
          or l.is_open = 1
          or exists (select null from rowq_deferred r where r.queue_id = p_queue_id)
      )
      and (
          l.lane <> -5 /* started */
          or exists (select null from rowq_started s where s.queue_id = p_queue_id)
      )
      and (
          l.lane <> -6 /* expiry */
          or exists (select null from rowq_expiry e where e.queue_id = p_queue_id)
      )
      and (
          l.lane <> -7 /* result */
          or l.check_after > v_now
          or exists (
              select /*+ index(r rowq_result_finished_ix) */ null
              from rowq_result r
              where r.queue_id = p_queue_id
          )
      )
      and (
          l.lane <> -8 /* history */
          or l.check_after > v_now
          or exists (
              select /*+ index(h rowq_history_pk) */ null
              from rowq_history h
              where h.queue_id = p_queue_id
          )
      )
    order by l.queue_id, l.lane;

    p_has_deferred := false;
    p_has_started := false;
    p_has_expiry := false;
    p_has_results := false;
    p_has_history := false;
    for i in 1 .. v_lanes.count loop
        p_has_deferred := p_has_deferred or v_lanes(i).lane = -4 /* deferred */;
        p_has_started := p_has_started or v_lanes(i).lane = -5 /* started */;
        p_has_expiry := p_has_expiry or v_lanes(i).lane = -6 /* expiry */;
        p_has_results := p_has_results or v_lanes(i).lane = -7 /* result */;
        p_has_history := p_has_history or v_lanes(i).lane = -8 /* history */;
        -- Purging and expiry continue from the floor even while it does not move.
        continue when v_lanes(i).lane between -8 /* history */ and -6 /* expiry */
            and v_lanes(i).is_backing_off = 1;
        v_started := sys_extract_utc(systimestamp);
        v_first := null;
        if v_lanes(i).lane < 0 or v_is_slow then
            v_first := internal_first_key(p_queue_id, v_lanes(i).lane, 0);
        else
            if v_next_lane is null or v_next_lane < v_lanes(i).lane then
                v_last := i;
                while v_last < v_lanes.count
                    and v_lanes(v_last + 1).lane = v_lanes(v_last).lane + 1
                loop
                    v_last := v_last + 1;
                end loop;
                internal_first_lane(
                    p_queue_id, v_lanes(i).lane, v_lanes(v_last).lane, v_next_lane, v_next_seq
                );
            end if;
            if v_next_lane = v_lanes(i).lane then
                v_first := v_next_seq;
            end if;
        end if;
        v_took := internal_microseconds(sys_extract_utc(systimestamp))
            - internal_microseconds(v_started);
        if not v_is_slow and v_next_lane > v_lanes(i).lane and v_took > c_fast_scan then
            -- Emptied blocks were scanned, of an unknown lane: scan this lane and each later one
            -- alone.
            v_is_slow := true;
            v_started := sys_extract_utc(systimestamp);
            v_first := internal_first_key(p_queue_id, v_lanes(i).lane, 0);
            v_took := internal_microseconds(sys_extract_utc(systimestamp))
                - internal_microseconds(v_started);
        end if;

        if (v_lanes(i).lane >= 0 or v_lanes(i).lane = -4 /* deferred */)
           and v_first is not null
           and v_lanes(i).is_open = 0
        then
            -- The lane has messages but is closed: the transaction that was to open it has rolled
            -- back or is still open.
            internal_open_lanes(p_queue_id, v_lanes(i).lane);
        end if;
        if v_lanes(i).lane in (-1 /* claim */, -3 /* finished */) then
            v_first := coalesce(v_first, v_lanes(i).floor_seq);
            v_min_step := 400;
        elsif v_first is null and v_took <= c_fast_scan then
            -- The lane is empty and the scan was fast. Leave the floor, so that an idle queue
            -- writes nothing.
            v_first := v_lanes(i).floor_seq;
            v_min_step := 0;
        else
            -- Stay half a second behind now: recent messages may not be committed yet.
            v_latest := internal_microseconds(v_started) - c_not_yet_committed;
            v_first := least(coalesce(v_first, v_latest), v_latest);
            v_min_step := case
                when v_lanes(i).lane between -8 /* history */ and -6 /* expiry */ then 60000000
                else 1000000
            end;
        end if;
        if v_took > c_fast_scan then
            v_min_step := 0;
        end if;
        if v_first < v_lanes(i).floor_seq
           or (
               v_first > v_lanes(i).floor_seq + v_min_step
               and (v_lanes(i).is_open = 1 or v_lanes(i).lane < 0)
           ) then
            internal_move_floor(p_queue_id, v_lanes(i).lane, v_lanes(i).floor_seq, v_first);
        end if;

        if v_took > c_slow_scan then
            internal_back_off_lane(p_queue_id, v_lanes(i).lane, v_took);
        end if;
    end loop;
end internal_rescan_floors;

procedure internal_first_lane(
    p_queue_id in number,
    p_from     in number,
    p_to       in number,
    p_lane     out number,
    p_seq      out number
)
is
-- purpose   Find the first lane from p_from to p_to that has messages, and its first seq; else p_to + 1.
-- differs   this engine's own: one scan instead of one per empty lane
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.lane, r.seq
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.lane between p_from and p_to
        order by r.queue_id, r.lane, r.seq, r.message_id;
begin
    p_lane := p_to + 1;
    p_seq := null;
    open ready_rows;
    fetch ready_rows into p_lane, p_seq;
    close ready_rows;
end internal_first_lane;

procedure internal_move_floor(
    p_queue_id in number,
    p_lane     in number,
    p_from     in number,
    p_to       in number
)
is
-- purpose   Move the floor of a lane down, or up unless it has changed since the caller read it.
-- locks     the row of the lane, skipped if locked
    v_row_id rowid;
    v_floor  rowq_lane.floor_seq%type;
    cursor lane_row is
        select l.rowid, l.floor_seq
        from rowq_lane l
        where l.queue_id = p_queue_id
          and l.lane = p_lane
        for update skip locked;
begin
    open lane_row;
    fetch lane_row into v_row_id, v_floor;
    close lane_row;
    if v_floor = p_from or p_to < v_floor then
        update rowq_lane l
        set l.floor_seq = p_to
        where l.rowid = v_row_id;
    end if;
end internal_move_floor;

procedure internal_back_off_lane(p_queue_id in number, p_lane in number, p_took in number)
is
-- purpose   Do not rescan a lane for 50 times the duration of its last scan (p_took microseconds).
-- locks     the row of the lane, skipped if locked
    c_factor        constant number := 50;
    c_longest_pause constant number := 3600000000;
    v_row_id rowid;
    cursor lane_row is
        select l.rowid
        from rowq_lane l
        where l.queue_id = p_queue_id
          and l.lane = p_lane
        for update skip locked;
begin
    open lane_row;
    fetch lane_row into v_row_id;
    close lane_row;
    update rowq_lane l
    set l.check_after = sys_extract_utc(systimestamp)
        + numtodsinterval(least(p_took * c_factor, c_longest_pause) / 1000000, 'second')
    where l.rowid = v_row_id;
end internal_back_off_lane;
