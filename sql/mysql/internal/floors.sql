-- Floors: where the live rows of a lane begin.
--
-- Deleted rows stay in an index while a snapshot can see them. A reader therefore starts at the
-- floor of its lane and skips them. maintain rescans from below, finds rows that were committed
-- late and lowers the floor: such a message waits for a later maintain, normally the next, and is
-- never lost. A lane below 0 is another table that is read from its low end, such as claim,
-- delayed or expiry. After a slow scan a lane backs off for 50 times the duration of the scan.
--
-- A lane is a row of lane. 1 of 12 dequeues moves its floor up, at most to half a second before
-- now. A closed lane is not read: its first message opens it, and maintain closes an empty front
-- lane again.
--
--   dequeue_fast, promote, pop_ready, ... -> move_floor
--   maintain_queue -> close_fronts -> first_key
--   promote, pop_ready, expire, ... -> first_key
--   push_ready, store -> open_lane
--   maintain_delivery -> rescan_floors -> first_key, open_lane, next_number, move_floor
--
-- Writes finished, lane. Only reads claim, delayed, expiry, history, ready, deferred, result,
-- started.

drop procedure if exists rowq.internal_move_floor;

delimiter //
create procedure rowq.internal_move_floor(
    p_queue_id int,
    p_lane smallint,
    p_from bigint,
    p_to bigint
)
sql security definer
modifies sql data
begin
-- purpose   Move the floor of a lane down, or up unless it has changed since the caller read it.
-- locks     the row of the lane, skipped if locked
-- differs   PostgreSQL keeps floors in an append-only table, because its readers scan dead versions
    declare v_floor bigint;
    -- Skip a locked row: its session is moving the floor or opening the lane.
    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = p_lane
    for update skip locked;
    if v_floor = p_from or p_to < v_floor then
        update rowq.lane l
        set l.floor = p_to
        where l.queue_id = p_queue_id
          and l.lane = p_lane;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_close_fronts;

delimiter //
create procedure rowq.internal_close_fronts(p_queue_id int)
sql security definer
modifies sql data
begin
-- purpose   Close empty front lanes that were opened over a minute ago, so that dequeue skips them.
-- locks     rows of lane, skipping locked ones
-- commits   its own transaction if the caller has none; never the caller's
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_lane, v_next, v_locked smallint;
    declare v_floor, v_first bigint;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);
            set v_lane = -1;

            -- A message inserted into a lane that is being closed waits for the next maintain. So
            -- close lanes only in a short transaction, not in the caller's.
            lanes: while v_owns_transaction do
                set v_next = null;
                select l.lane, l.floor into v_next, v_floor
                from rowq.lane l force index (primary)
                where l.queue_id = p_queue_id
                  and l.lane > v_lane
                  and l.lane mod 2 = 0
                  and l.is_open
                  and l.sweep_at <= utc_timestamp(6)
                order by l.queue_id, l.lane
                limit 1;
                if v_next is null then
                    leave lanes;
                end if;
                set v_lane = v_next, v_locked = null;

                select l.lane into v_locked
                from rowq.lane l force index (primary)
                where l.queue_id = p_queue_id
                  and l.lane = v_lane
                for update skip locked;
                call rowq.internal_first_key(p_queue_id, v_lane, v_floor, v_first);
                if v_locked is not null and v_first is null then
                    -- Move the floor too: no session moves that of a closed lane.
                    update rowq.lane l
                    set l.is_open = false,
                        l.floor = greatest(
                            l.floor,
                            timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 500000
                        )
                    where l.queue_id = p_queue_id
                      and l.lane = v_lane;
                end if;
            end while;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_first_key;

delimiter //
create procedure rowq.internal_first_key(
    p_queue_id int,
    p_lane smallint,
    p_from bigint,
    out p_first bigint
)
sql security definer
reads sql data
begin
-- purpose   Return the first live key of a lane from p_from on; null if there is none.
    declare v_attempt smallint;
    declare v_due_at, v_since datetime(6);
    set p_first = null;

    case p_lane
        when -1 /* claim */ then
            select c.claim_id, c.messages is null into p_first, v_attempt
            from rowq.claim c force index (primary)
            where c.queue_id = p_queue_id
              and c.claim_id > 0
              and c.claim_id >= p_from
            order by c.queue_id, c.claim_id
            limit 1;
        when -2 /* delayed */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select d.due_at, d.attempt into v_due_at, v_attempt
            from rowq.delayed d force index (primary)
            where d.queue_id = p_queue_id
              and d.due_at >= v_since
            order by d.queue_id, d.due_at, d.message_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -3 /* finished */ then
            select f.finish_id, f.messages is null into p_first, v_attempt
            from rowq.finished f force index (primary)
            where f.queue_id = p_queue_id
              and f.finish_id > 0
              and f.finish_id >= p_from
            order by f.queue_id, f.finish_id
            limit 1;
        when -4 /* deferred */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select r.due_at, r.is_hint into v_due_at, v_attempt
            from rowq.deferred r force index (primary)
            where r.queue_id = p_queue_id
              and r.due_at >= v_since
            order by r.queue_id, r.due_at, r.deferred_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -6 /* expiry */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select e.expires_at, e.lane into v_due_at, v_attempt
            from rowq.expiry e force index (primary)
            where e.queue_id = p_queue_id
              and e.expires_at >= v_since
            order by e.queue_id, e.expires_at, e.expiry_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -7 /* result */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select r.finished_at, r.state = 'dead' into v_due_at, v_attempt
            from rowq.result r force index (result_finished_ix)
            where r.queue_id = p_queue_id
              and r.finished_at >= v_since
            order by r.queue_id, r.finished_at
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -8 /* history */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select h.ended_at, h.outcome is null into v_due_at, v_attempt
            from rowq.history h force index (primary)
            where h.queue_id = p_queue_id
              and h.ended_at >= v_since
            order by h.queue_id, h.ended_at, h.message_id, h.claim_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -5 /* started */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select s.started_at, s.messages into v_due_at, v_attempt
            from rowq.started s force index (primary)
            where s.queue_id = p_queue_id
              and s.claim_id > 0
              and s.started_at >= v_since
            order by s.queue_id, s.started_at, s.claim_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        else
            select r.seq, r.attempt into p_first, v_attempt
            from rowq.ready r force index (primary)
            where r.queue_id = p_queue_id
              and r.lane = p_lane
              and r.seq >= p_from
              and r.seq < 9223372036854775806
            order by r.queue_id, r.lane, r.seq, r.message_id
            limit 1;
    end case;
end//
delimiter ;

drop procedure if exists rowq.internal_open_lane;

delimiter //
create procedure rowq.internal_open_lane(p_queue_id int, p_lane smallint)
sql security definer
modifies sql data
begin
-- purpose   Open a lane for dequeue, for at least a minute.
-- locks     the row of the lane, skipped if locked; or a new row of lane
    declare v_lane, v_request smallint;
    -- Skip a locked row, so that no producer waits: its session is usually opening the lane.
    select l.lane into v_lane
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = p_lane
    for update skip locked;
    if v_lane is not null then
        update rowq.lane l
        set l.is_open = true,
            l.sweep_at = utc_timestamp(6) + interval 1 minute
        where l.queue_id = p_queue_id
          and l.lane = p_lane
          and not l.is_open;
    else
        -- That session may roll back or take long. So insert an open-lane request, an open lane
        -- below -1000 without messages: while there is one, dequeue reads closed lanes too. The
        -- next maintain opens the lane and deletes the request.
        select l.lane into v_request
        from rowq.lane l force index (primary)
        where l.queue_id = p_queue_id
          and l.lane < 0
          and l.is_open
        limit 1;
        if v_request is null then
            -- If another session has drawn the same number, there is a request already.
            insert ignore into rowq.lane (queue_id, lane, is_open)
            values (p_queue_id, -1001 - floor(31000 * rand()), true);
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_rescan_floors;

delimiter //
create procedure rowq.internal_rescan_floors(
    p_queue_id int,
    p_has_started boolean,
    p_has_results boolean,
    p_has_history boolean
)
sql security definer
modifies sql data
begin
-- purpose   Find the first live row of every lane, correct its floor, and open lanes.
-- locks     rows of lane, skipping locked ones
-- differs   PostgreSQL scans from the safe start, and from the very start once a minute
    declare c_factor int default 50;
    -- Times are in microseconds. A scan longer than c_fast_scan has read dead rows. After one
    -- longer than c_slow_scan the lane backs off c_factor times as long, at most c_longest_pause.
    declare c_fast_scan bigint default 300;
    declare c_slow_scan bigint default 20000;
    declare c_longest_pause bigint default 3600000000;
    declare v_lane smallint default -9;
    declare v_next smallint;
    declare v_is_open boolean;
    declare v_is_hidden boolean default false;
    declare v_floor, v_first, v_latest, v_min_step, v_took, v_pause bigint;
    declare v_started, v_sweep_at datetime(6);
    declare v_requests longtext;

    -- Read open-lane requests before scanning the lanes; only those may be deleted afterwards.
    select json_arrayagg(l.lane) into v_requests
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane < -1000;

    lanes: loop
        set v_next = null;
        select l.lane, l.floor, l.is_open into v_next, v_floor, v_is_open
        from rowq.lane l force index (primary)
        where l.queue_id = p_queue_id
          and l.lane > v_lane
          and l.lane <> -6 /* expiry */
          and (p_has_started or l.lane <> -5 /* started */)
          and (p_has_results or l.lane <> -7 /* result */)
          and (p_has_history or l.lane <> -8 /* history */)
          and l.check_after <= utc_timestamp(6)
        order by l.queue_id, l.lane
        limit 1;
        if v_next is null then
            leave lanes;
        end if;
        set v_lane = v_next;

        set v_started = utc_timestamp(6);
        call rowq.internal_first_key(p_queue_id, v_lane, 0, v_first);
        set v_took = timestampdiff(microsecond, v_started, utc_timestamp(6));

        if v_lane >= 0 and v_first is not null and not v_is_open then
            -- The lane has messages but is closed: the transaction that was to open it has rolled
            -- back or is still open.
            call rowq.internal_open_lane(p_queue_id, v_lane);
            select l.is_open into v_is_open
            from rowq.lane l force index (primary)
            where l.queue_id = p_queue_id
              and l.lane = v_lane;
            if not v_is_open then
                -- An open transaction has locked the row of the lane: let dequeue read closed
                -- lanes.
                set v_is_hidden = true;
                iterate lanes;
            end if;
        end if;
        if v_lane in (-1 /* claim */, -3 /* finished */) then
            if v_first is null and v_took > c_fast_scan then
                -- If there is no row, use the next number: all later rows are above it.
                call rowq.internal_next_number(p_queue_id, v_lane, v_first);
            end if;
            set v_first = coalesce(v_first, v_floor), v_min_step = 400;
        else
            -- Stay half a second behind now: recent messages may not be committed yet.
            set v_latest = timestampdiff(microsecond, '1970-01-01', v_started) - 500000,
                v_first = least(coalesce(v_first, v_latest), v_latest),
                v_min_step = 60000000;
        end if;
        if v_took > c_fast_scan then
            set v_min_step = 0;
        end if;
        if v_first < v_floor
           or (v_first > v_floor + v_min_step and (v_is_open or v_lane < 0)) then
            call rowq.internal_move_floor(p_queue_id, v_lane, v_floor, v_first);
        end if;

        -- After a slow scan over dead rows, back off.
        if v_took > c_slow_scan then
            set v_pause = least(v_took * c_factor, c_longest_pause);
            -- An open purge_archive may hold the row: skip it.
            set v_next = null;
            select l.lane into v_next
            from rowq.lane l force index (primary)
            where l.queue_id = p_queue_id
              and l.lane = v_lane
            for update /*!80000 of l */ skip locked;
            if v_next is not null then
                update rowq.lane l
                set l.check_after = utc_timestamp(6) + interval v_pause microsecond
                where l.queue_id = p_queue_id
                  and l.lane = v_lane;
            end if;
        end if;
    end loop;

    -- A closed lane that backs off was not scanned, and may be the one requested.
    set v_next = null;
    if v_requests is not null then
        select l.lane into v_next
        from rowq.lane l force index (primary)
        where l.queue_id = p_queue_id
          and l.lane >= 0
          and not l.is_open
          and l.check_after > utc_timestamp(6)
        limit 1;
    end if;
    if v_requests is not null and v_next is null then
        delete l
        from json_table(v_requests, '$[*]' columns (lane smallint path '$')) j
        straight_join rowq.lane l force index (primary)
            on l.queue_id = p_queue_id
           and l.lane = j.lane;
    end if;

    -- maintain may skip an idle queue for 5 minutes, but not while a lane backs off: to see that
    -- the queue is idle it would scan the dead rows.
    set v_sweep_at = utc_timestamp(6) + interval 5 minute;
    set v_next = null;
    select l.lane into v_next
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane >= -8 /* history */
      and l.check_after > utc_timestamp(6)
    limit 1;
    if v_is_hidden or v_next is not null then
        set v_sweep_at = '1970-01-01';
    end if;
    -- The elected session holds the row of lane -1 already, so the update does not wait.
    update rowq.lane l
    set l.is_open = v_is_hidden,
        l.sweep_at = v_sweep_at
    where l.queue_id = p_queue_id
      and l.lane = -1 /* claim */
      and (
          l.is_open <> v_is_hidden
          or l.sweep_at not between utc_timestamp(6) and v_sweep_at
      );
end//
delimiter ;

drop procedure if exists rowq.internal_next_number;

delimiter //
create procedure rowq.internal_next_number(
    p_queue_id int,
    p_lane smallint,
    out p_number bigint
)
sql security definer
modifies sql data
begin
-- purpose   Return the next number for claims or finished batches.
-- locks     for finished batches a new row, deleted at once
-- differs   other engines use a sequence
    if p_lane = -1 /* claim */ then
        set p_number = uuid_short() & 9007199254740991;
    else
        insert into rowq.finished (queue_id, finished_at, state, messages)
        values (p_queue_id, utc_timestamp(6), 'completed', '[]');
        set p_number = last_insert_id();
        delete f
        from rowq.finished f force index (primary)
        where f.queue_id = p_queue_id
          and f.finish_id = p_number;
    end if;
end//
delimiter ;
