set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRunDue
    @part_id int,
    @schedule_key varbinary(402),
    @owns_transaction bit
as
begin
-- routine   InternalRunDue
-- purpose   Add the messages of a schedule's due ticks, a hundred at most, and move it on.
-- promise   P30 P31
-- locks     as InternalSendTick, waited for 20 ms; the caller holds the schedule row
-- errors    RQ711
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @late datetime2(6) = dateadd(second, -60, @now);
    declare @cron nvarchar(200);
    declare @bits nvarchar(200);
    declare @interval_seconds float;
    declare @time_zone nvarchar(128);
    declare @windows_name nvarchar(128);
    declare @missed nvarchar(20);
    declare @starts_at datetime2(6);
    declare @ends_at datetime2(6);
    declare @tick datetime2(6);
    declare @after datetime2(6);
    declare @ticks int = 0;
    declare @message_id bigint;
    declare @outcome nvarchar(20);
    declare @last_message_id bigint;
    declare @error nvarchar(200);

    -- A guest does not wait here, and an end of such a wait would doom the caller's transaction.
    if @owns_transaction = 1
        set lock_timeout 20;
    select @cron = s.cron, @interval_seconds = s.interval_seconds, @time_zone = s.time_zone,
           @missed = s.missed, @starts_at = s.starts_at, @ends_at = s.ends_at,
           @tick = s.next_run_at
    from rowq.schedule s with (forceseek)
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (maxdop 1, keepfixed plan);
    exec rowq.InternalWindowsZone @time_zone, @windows_name output;
    if @cron is not null
        exec rowq.InternalParseCron @cron, @bits output;

    while @tick <= @now and @ticks < 100
    begin
        set @after = @late;
        if @tick >= @late or @missed <> N'skip'
        begin
            exec rowq.InternalSendTick
                @part_id, @schedule_key, @tick, @message_id output, @outcome output;
            set @error = null;
            if @outcome = N'enqueued'
                set @last_message_id = @message_id;
            else
                set @error = concat(
                    N'message ', @message_id, N' of an earlier tick has not ended'
                );
            set @after = iif(@tick < @late and @missed = N'once', @now, @tick);
            set @ticks += 1;
        end;
        exec rowq.InternalNextTick
            @bits, @interval_seconds, @windows_name, @starts_at, @ends_at, @after, @tick output;
    end;

    update s
    set next_run_at     = @tick,
        last_run_at     = iif(@last_message_id is null, s.last_run_at, @now),
        last_message_id = coalesce(@last_message_id, s.last_message_id),
        last_error      = @error
    from rowq.schedule s with (rowlock, forceseek)
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (maxdop 1, keepfixed plan);
end
go
