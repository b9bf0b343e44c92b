set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalGiveUpTick
    @part_id int,
    @schedule_key varbinary(402),
    @error nvarchar(4000)
as
begin
-- routine   InternalGiveUpTick
-- purpose   Note why the due tick of a schedule made no message, and let it go on from now.
-- promise   P30 P31
-- locks     the schedule row, tried
-- errors    RQ711
-- differs   no such helper on PostgreSQL: part of internal_run_due
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @cron nvarchar(200);
    declare @bits nvarchar(200);
    declare @interval_seconds float;
    declare @time_zone nvarchar(128);
    declare @windows_name nvarchar(128);
    declare @starts_at datetime2(6);
    declare @ends_at datetime2(6);
    declare @tick datetime2(6);

    select @cron = s.cron, @interval_seconds = s.interval_seconds, @time_zone = s.time_zone,
           @starts_at = s.starts_at, @ends_at = s.ends_at
    from rowq.schedule s with (rowlock, readpast, readcommittedlock, forceseek)
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        return;
    begin try
        exec rowq.InternalWindowsZone @time_zone, @windows_name output;
        if @cron is not null
            exec rowq.InternalParseCron @cron, @bits output;
        exec rowq.InternalNextTick
            @bits, @interval_seconds, @windows_name, @starts_at, @ends_at, @now, @tick output;
    end try
    begin catch
        -- A schedule whose time zone the server has lost has no next tick until it is altered. It
        -- must not stop all others.
        if xact_state() = -1
            throw;
        set @tick = null;
    end catch;

    -- A row that another session has changed meanwhile is not due any more.
    update s
    set next_run_at = @tick,
        last_error  = left(@error collate Latin1_General_100_CI_AS_SC, 2000)
    from rowq.schedule s with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
      and s.next_run_at <= @now
    option (maxdop 1, keepfixed plan);
end
go
