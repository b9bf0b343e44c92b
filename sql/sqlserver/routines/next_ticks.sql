set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.NextTicks
    @cron nvarchar(max) = null,
    @interval_seconds float = null,
    @time_zone nvarchar(max) = 'UTC',
    @after datetime2(6) = null,
    @max_ticks int = 5
as
begin
-- routine   NextTicks
-- version   1
-- purpose   Compute the next run times of a schedule before it is created.
-- promise   P31
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   Windows names of time zones are accepted too
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int;
    declare @windows_name nvarchar(128);
    declare @bits nvarchar(200);
    declare @tick datetime2(6) = coalesce(@after, sysutcdatetime());
    declare @starts_at datetime2(6) = @tick;
    declare @ticks table (tick datetime2(6) not null primary key);

    begin try
        -- Under implicit_transactions this read begins the caller's transaction, at the caller's
        -- isolation level. @begun keeps the value out of the results.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        if @cron is null and @interval_seconds is null
            or @cron is not null and @interval_seconds is not null
            exec rowq.InternalRefuse N'exactly one of cron and interval_seconds is required';
        exec rowq.InternalCheckRange N'interval_seconds', @interval_seconds, 1, 315360000;
        exec rowq.InternalCheckTimeZone @time_zone, @windows_name output;
        exec rowq.InternalCheckRange N'max_ticks', @max_ticks, 1, 1000, @is_required = 1;
        if @tick not between '20000101' and '21000101'
            exec rowq.InternalRefuse N'after must be between the years 2000 and 2100';
        if @cron is not null
            exec rowq.InternalParseCron @cron, @bits output;

        while @max_ticks > 0
        begin
            exec rowq.InternalNextTick
                @bits, @interval_seconds, @windows_name, @starts_at, null, null, @tick,
                @tick output;
            if @tick is null
                break;
            insert into @ticks (tick) values (@tick);
            set @max_ticks -= 1;
        end;
        select t.tick from @ticks t order by t.tick;
    end try
    begin catch
        -- With xact_abort off, an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
