set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRescanFloors
    @part_id int
as
begin
-- routine   InternalRescanFloors
-- purpose   Look for the first live row of every lane from its very start, and put the floors right.
-- promise   P13 P14
-- locks     rows of lanes, passing over locked ones
-- differs   PostgreSQL looks from a safe mark, and from the start once a minute
    set nocount on;
    -- Times are in microseconds. The clock moves in steps of up to 16 milliseconds, so a look is
    -- long only from two steps on. One that takes longer than @short_walk has walked over ghosts.
    -- After one longer than @long_walk the lane rests @duty times as long, but never longer than
    -- @longest_pause. A look into all lanes is short up to @short_look.
    declare @short_walk bigint = 35000;
    declare @long_walk bigint = 50000;
    declare @duty int = 50;
    declare @longest_pause bigint = 3600000000;
    declare @short_look bigint = 35000;
    declare @last smallint = -1;
    declare @lane smallint = -9;
    declare @next smallint;
    declare @is_open bit;
    declare @floor bigint;
    declare @first bigint;
    declare @latest bigint;
    declare @worth_it bigint;
    declare @took bigint;
    declare @pause int;
    declare @started datetime2(6);

    -- This is one look into all lanes of ready, which finds nothing to do most of the time. Only if
    -- it does, or if it took so long that a lane must rest, they are taken one by one below.
    set @started = sysutcdatetime();
    set @latest = datediff_big(microsecond, '19700101', @started) - 500000;
    select top (1) @last = 19
    from rowq.lane l with (readuncommitted, forceseek)
    outer apply (
        select top (1) r.seq
        from rowq.ready r
            with (rowlock, readpast, readcommittedlock, forceseek (ready_pk (part_id, lane)))
        where r.part_id = @part_id
          and r.lane = l.lane
        order by r.seq, r.message_id
    ) f
    where l.part_id = @part_id
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
    if datediff_big(microsecond, @started, sysutcdatetime()) > @short_look
        set @last = 19;

    while 1 = 1
    begin
        set @next = null;
        select top (1) @next = l.lane, @floor = l.floor, @is_open = l.is_open
        from rowq.lane l with (readuncommitted, forceseek)
        where l.part_id = @part_id
          and l.lane between @lane + 1 and @last
          and (l.lane >= -3 /* finished */ or l.is_open = 1)
          and l.check_after <= sysutcdatetime()
        order by l.lane
        option (maxdop 1, keepfixed plan);
        if @next is null
            break;
        set @lane = @next;

        set @started = sysutcdatetime();
        exec rowq.InternalFirstKey @part_id, @lane, @first output;
        set @took = datediff_big(microsecond, @started, sysutcdatetime());

        if @lane >= 0 and @first is not null and @is_open = 0
            -- The lane has messages but is closed: its row was locked when a producer wanted to
            -- open it, or the session that opened it rolled back.
            exec rowq.InternalOpenLanes @part_id, @lane;
        if @lane = -1 /* claim */
        begin
            -- If there is no row, take the next number for the first, because all later rows are
            -- above it.
            if @first is null and @took > @short_walk
                set @first = next value for rowq.claim_seq;
            set @first = coalesce(@first, @floor);
            set @worth_it = 400;
        end;
        else
        begin
            -- The floor stays half a second behind now, because messages of the last moments may
            -- not be committed yet.
            set @latest = datediff_big(microsecond, '19700101', @started) - 500000;
            if @first is null or @first > @latest
                set @first = @latest;
            set @worth_it = 60000000;
        end;
        if @took > @short_walk
            set @worth_it = 0;
        if @first < @floor or @first > @floor + @worth_it and (@is_open = 1 or @lane < 0)
            exec rowq.InternalMoveFloor @part_id, @lane, @floor, @first;

        -- After a long walk over ghosts, rest for fifty times as long as it took.
        if @took > @long_walk
        begin
            set @pause = iif(@took * @duty > @longest_pause, @longest_pause, @took * @duty)
                / 1000;
            update l
            set check_after = dateadd(millisecond, @pause, sysutcdatetime())
            from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where l.part_id = @part_id
              and l.lane = @lane;
        end;
    end;
end
go
