-- Floors: where the live rows of a lane begin.
--
-- Deleted rows stay in an index while a snapshot can see them. A reader therefore starts at the
-- floor of its lane and skips them. maintain rescans from below, finds rows that were committed
-- late and lowers the floor: such a message waits for a later maintain, normally the next, and is
-- never lost. A lane below 0 is another table that is read from its low end, such as claim,
-- delayed or expiry. After a slow scan a lane backs off for 50 times the duration of the scan.
--
-- A lane is a row of lane, read dirty and changed with readpast, because it is approximate. 1 of 12
-- dequeues moves its floor up, at most to half a second before now. A lane that was never used is
-- closed and not read.
--
--   enqueue, store, store_batch -> open_lanes
--   promote, pop_ready -> move_floor
--   maintain_delivery -> rescan_floors -> first_key, open_lanes, move_floor
--
-- Writes lane. Only reads claim, delayed, expiry, finished, history, ready, deferred, result,
-- started.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalOpenLanes
    @queue_id int,
    @lane smallint
as
begin
-- purpose   Open a lane and its front companion for dequeue.
-- locks     the rows of the two lanes, skipped if locked
    set nocount on;
    -- Skip locked rows, so that no producer waits: their session is usually opening the lanes. If
    -- the lanes stay closed, the next maintain opens them.
    update l
    set is_open = 1
    from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where l.queue_id = @queue_id
      and l.lane in (@lane / 2 * 2, @lane / 2 * 2 + 1)
      and l.is_open = 0;
end
go

create or alter procedure rowq.InternalMoveFloor
    @queue_id int,
    @lane smallint,
    @from bigint,
    @to bigint
as
begin
-- purpose   Move the floor of a lane down, or up unless it has changed since the caller read it.
-- locks     the row of the lane and, to move up, lane -22; skipped if locked
-- differs   PostgreSQL keeps floors in an append-only table, because its readers scan dead versions
    set nocount on;
    declare @callers_lane smallint;

    -- A call in a caller's transaction may have leased rows that a rollback would restore below the
    -- new floor. So a floor moves up only if no such call holds lane -22; otherwise @callers_lane
    -- stays null.
    if @to > @from
        select @callers_lane = l.lane
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.queue_id = @queue_id
          and l.lane = -22 /* callers */;

    -- Skip a locked row: its session is moving the floor or opening the lane.
    update l
    set floor = @to
    from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where l.queue_id = @queue_id
      and l.lane = @lane
      and (l.floor > @to or l.floor = @from and @callers_lane is not null);
end
go

create or alter procedure rowq.InternalRescanFloors
    @queue_id int
as
begin
-- purpose   Find the first live row of every lane, and correct the floors.
-- locks     rows of lane, skipping locked ones
-- differs   PostgreSQL scans from the safe start, and from the very start once a minute
    set nocount on;
    -- Times are in microseconds. The clock moves in steps of up to 16 milliseconds, so only 2 steps
    -- are significant. A scan longer than @fast_scan has read ghosts. After one longer than
    -- @slow_scan the lane backs off @factor times as long, at most @longest_pause.
    declare @fast_scan bigint = 35000, @slow_scan bigint = 50000, @factor int = 50,
        @longest_pause bigint = 3600000000, @fast_scan_of_all bigint = 35000, @last smallint = -1,
        @lane smallint = -9, @next smallint, @is_open bit, @floor bigint, @first bigint,
        @latest bigint, @min_step bigint, @took bigint, @pause int, @started datetime2(6);

    -- One scan of all lanes of ready, which usually finds nothing to do. Scan lanes one by one
    -- below only if it does, or if it was slow.
    set @started = sysutcdatetime();
    set @latest = datediff_big(microsecond, '19700101', @started) - 500000;
    select top (1) @last = 19
    from rowq.lane l with (readuncommitted, forceseek)
    outer apply (
        select top (1) r.seq
        from rowq.ready r
            with (rowlock, readpast, readcommittedlock, forceseek (ready_pk (queue_id, lane)))
        where r.queue_id = @queue_id
          and r.lane = l.lane
        order by r.seq, r.message_id
    ) f
    where l.queue_id = @queue_id
      and l.lane >= 0
      and l.check_after <= @started
      and (
          l.is_open = 0 and f.seq is not null
          or f.seq < l.floor
          or @latest < l.floor
          or l.is_open = 1
              and @latest > l.floor + 60000000
              and coalesce(f.seq, @latest) > l.floor + 60000000
      )
    option (loop join, maxdop 1, keepfixed plan);
    if datediff_big(microsecond, @started, sysutcdatetime()) > @fast_scan_of_all
        set @last = 19;

    while 1 = 1
    begin
        set @next = null;
        select top (1) @next = l.lane, @floor = l.floor, @is_open = l.is_open
        from rowq.lane l with (readuncommitted, forceseek)
        where l.queue_id = @queue_id
          and l.lane between @lane + 1 and @last
          and (l.lane >= -3 /* finished */ or l.is_open = 1)
          and l.check_after <= sysutcdatetime()
        order by l.lane
        option (maxdop 1, keepfixed plan);
        if @next is null
            break;
        set @lane = @next;

        set @started = sysutcdatetime();
        exec rowq.InternalFirstKey @queue_id, @lane, @first output;
        set @took = datediff_big(microsecond, @started, sysutcdatetime());

        if @lane >= 0 and @first is not null and @is_open = 0
            -- The lane has messages but is closed: its row was locked when a producer tried to open
            -- it, or the session that opened it rolled back.
            exec rowq.InternalOpenLanes @queue_id, @lane;
        if @lane = -1 /* claim */
        begin
            -- If there is no row, use the next number: all later rows are above it.
            if @first is null and @took > @fast_scan
                set @first = next value for rowq.claim_seq;
            set @first = coalesce(@first, @floor);
            set @min_step = 400;
        end;
        else
        begin
            -- Stay half a second behind now: recent messages may not be committed yet.
            set @latest = datediff_big(microsecond, '19700101', @started) - 500000;
            if @first is null or @first > @latest
                set @first = @latest;
            set @min_step = 60000000;
        end;
        if @took > @fast_scan
            set @min_step = 0;
        if @first < @floor or @first > @floor + @min_step and (@is_open = 1 or @lane < 0)
            exec rowq.InternalMoveFloor @queue_id, @lane, @floor, @first;

        -- After a slow scan over ghosts, back off.
        if @took > @slow_scan
        begin
            set @pause = iif(@took * @factor > @longest_pause, @longest_pause, @took * @factor)
                / 1000;
            update l
            set check_after = dateadd(millisecond, @pause, sysutcdatetime())
            from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where l.queue_id = @queue_id
              and l.lane = @lane;
        end;
    end;
end
go

create or alter procedure rowq.InternalFirstKey
    @queue_id int,
    @lane smallint,
    @first bigint output
as
begin
-- purpose   Return the first live key of a lane; null if there is none.
-- locks     shared locks while reading, skipping locked rows
    set nocount on;
    set @first = null;

    if @lane = -1 /* claim */
        select top (1) @first = c.claim_id
        from rowq.claim c with (rowlock, readpast, readcommittedlock, forceseek)
        where c.queue_id = @queue_id
        order by c.claim_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -2 /* delayed */
        select top (1) @first = datediff_big(microsecond, '19700101', d.due_at)
        from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
        order by d.due_at, d.message_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -8 /* history */
        select top (1) @first = datediff_big(microsecond, '19700101', h.ended_at)
        from rowq.history h
            with (index (history_pk), rowlock, readpast, readcommittedlock, forceseek)
        where h.queue_id = @queue_id
        order by h.ended_at, h.message_id, h.claim_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -7 /* result */
        select top (1) @first = datediff_big(microsecond, '19700101', r.finished_at)
        from rowq.result r
            with (index (result_finished_ix), rowlock, readpast, readcommittedlock, forceseek)
        where r.queue_id = @queue_id
        order by r.finished_at, r.message_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -6 /* expiry */
        select top (1) @first = datediff_big(microsecond, '19700101', e.expires_at)
        from rowq.expiry e with (rowlock, readpast, readcommittedlock, forceseek)
        where e.queue_id = @queue_id
        order by e.expires_at, e.expiry_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -5 /* started */
        select top (1) @first = datediff_big(microsecond, '19700101', s.started_at)
        from rowq.started s with (rowlock, readpast, readcommittedlock, forceseek)
        where s.queue_id = @queue_id
        order by s.started_at, s.claim_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -4 /* deferred */
        select top (1) @first = datediff_big(microsecond, '19700101', r.due_at)
        from rowq.deferred r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.queue_id = @queue_id
        order by r.due_at, r.deferred_id
        option (maxdop 1, keepfixed plan);
    else if @lane = -3 /* finished */
        select top (1) @first = datediff_big(microsecond, '19700101', f.finished_at)
        from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
        where f.queue_id = @queue_id
        order by f.finished_at, f.message_id
        option (maxdop 1, keepfixed plan);
    else
        select top (1) @first = r.seq
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.queue_id = @queue_id
          and r.lane = @lane
        order by r.seq, r.message_id
        option (maxdop 1, keepfixed plan);
end
go
