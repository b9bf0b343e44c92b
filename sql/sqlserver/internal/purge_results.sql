set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPurgeResults
    @part_id int,
    @seconds float,
    @limit int,
    @owns_transaction bit,
    @purged int output
as
begin
-- routine   InternalPurgeResults
-- purpose   Delete up to @limit results, 1000 at most, of messages that ended more than @seconds ago; @purged is how many there were.
-- promise   P13 P32
-- locks     result rows, passing over locked ones; lane -7, tried
    set nocount on;
    declare @floor bigint;
    declare @is_open bit;
    declare @since datetime2(6);
    declare @before datetime2(6) = dateadd(
        microsecond, -cast(round((@seconds - floor(@seconds)) * 1e6, 0) as int),
        dateadd(second, -cast(floor(@seconds) as int), sysutcdatetime())
    );
    declare @old table (message_id bigint not null primary key);
    set @purged = 0;

    select @floor = l.floor, @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -7 /* result */;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    -- Find rows with locks that do not last, then lock them by the other index, as whoever writes
    -- them does.
    insert into @old (message_id)
    select top (@limit) r.message_id
    from rowq.result r
        with (index (result_finished_ix), rowlock, readpast, readcommittedlock, forceseek)
    where r.part_id = @part_id
      and r.finished_at >= @since
      and r.finished_at < @before
    order by r.finished_at, r.message_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount > 0
    begin
        delete r
        from @old o
        inner join rowq.result r
            with (index (result_pk), rowlock, xlock, readpast, readcommittedlock, forceseek)
            on r.part_id = @part_id
           and r.message_id = o.message_id
        where r.finished_at < @before
        option (loop join, force order, maxdop 1, keepfixed plan);
        set @purged = @@rowcount;
    end;

    -- From now on maintain keeps the floor.
    if @is_open = 0 and @owns_transaction = 1
        update l
        set is_open = 1
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.part_id = @part_id
          and l.lane = -7 /* result */;
end
go
