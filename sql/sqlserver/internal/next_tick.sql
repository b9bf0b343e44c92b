set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNextTick
    @bits nvarchar(200),
    @interval_seconds float,
    @windows_name nvarchar(128),
    @starts_at datetime2(6),
    @ends_at datetime2(6),
    @after datetime2(6),
    @tick datetime2(6) output
as
begin
-- routine   InternalNextTick
-- purpose   Return the first tick after a moment of a schedule, by its parsed cron expression or its interval; null where there is none.
-- promise   P31
    set nocount on;
    declare @since datetime2(6) = @after;
    declare @step bigint;
    declare @microseconds bigint;

    if @after < @starts_at
        set @since = dateadd(microsecond, -1, @starts_at);
    if @bits is not null
        exec rowq.InternalNextCron @bits, @windows_name, @since, @tick output;
    else if @since < @starts_at
        set @tick = @starts_at;
    else
    begin
        -- Count in microseconds from starts_at, so that the ticks do not drift.
        set @step = cast(round(@interval_seconds * 1e6, 0) as bigint);
        set @microseconds = datediff_big(microsecond, '19700101', @starts_at)
            + (datediff_big(microsecond, @starts_at, @since) / @step + 1) * @step;
        -- The type ends with the year 9999.
        set @tick = null;
        if @microseconds < 253402214400000000
            exec rowq.InternalFromMicroseconds @microseconds, @tick output;
    end;
    if @tick > @ends_at
        set @tick = null;
end
go
