set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRoom
    @part_id int,
    @max_leased int,
    @rate_limit int,
    @rate_seconds float,
    @wanted int,
    @room int output
as
begin
-- routine   InternalRoom
-- purpose   Return how many of the wanted messages a queue's limits leave room for at this moment.
-- promise   P28 P29
-- locks     none with row versions; else rows, shared while they are read, waited for a moment
    set nocount on;
    -- Without row versions these reads wait for a session that is ending a lease. If that takes
    -- longer, error 1222 ends the dequeue, which gives nothing then.
    set lock_timeout 100;
    declare @first bigint;
    declare @count int = 0;
    declare @since datetime2(6);
    set @room = @wanted;

    if @max_leased > 0
    begin
        -- Begin at the very first claim and not at the floor, because one that was committed late
        -- counts, too. What another session is just ending counts until that is committed.
        select top (1) @first = c.claim_id
        from rowq.claim c with (forceseek)
        where c.part_id = @part_id
        order by c.claim_id
        option (maxdop 1, keepfixed plan);
        if @first is not null
            select @count = count(*)
            from (
                select top (@max_leased) 1 as one
                from rowq.leased l with (forceseek)
                where l.part_id = @part_id
                  and l.claim_id >= @first
            ) h
            option (maxdop 1, keepfixed plan);
        set @room = iif(@max_leased - @count < @room, @max_leased - @count, @room);
    end;

    if @rate_limit > 0
    begin
        set @since = dateadd(
            microsecond, -cast(round((@rate_seconds - floor(@rate_seconds)) * 1e6, 0) as int),
            dateadd(second, -cast(floor(@rate_seconds) as int), sysutcdatetime())
        );
        select @count = coalesce(sum(s.messages), 0)
        from rowq.started s with (forceseek)
        where s.part_id = @part_id
          and s.started_at > @since
        option (maxdop 1, keepfixed plan);
        set @room = iif(@rate_limit - @count < @room, @rate_limit - @count, @room);
    end;
    if @room < 0
        set @room = 0;
end
go
