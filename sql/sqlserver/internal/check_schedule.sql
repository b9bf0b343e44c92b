set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckSchedule
    @schedule_name nvarchar(max),
    @cron nvarchar(max),
    @interval_seconds float,
    @time_zone nvarchar(max),
    @missed nvarchar(max),
    @starts_at datetime2(6),
    @ends_at datetime2(6),
    @message_type nvarchar(max),
    @headers nvarchar(max),
    @priority int,
    @max_attempts int,
    @group_key nvarchar(max),
    @body nvarchar(max),
    @body_binary varbinary(max),
    @max_body_length int,
    @next_run_at datetime2(6) output
as
begin
-- routine   InternalCheckSchedule
-- purpose   Refuse a schedule with a bad name, time or message, or without a tick to come; @next_run_at is the first one.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @fault nvarchar(200);
    declare @tick_headers nvarchar(max);
    declare @windows_name nvarchar(128);
    declare @bits nvarchar(200);

    exec rowq.InternalCheckName N'schedule_name', @schedule_name;
    -- A dot at the end makes trailing blanks count.
    set @fault = case
        when @cron is null and @interval_seconds is null
            or @cron is not null and @interval_seconds is not null
            then N'a schedule has either cron or interval_seconds'
        when @missed is null
            or (@missed + N'.') collate Latin1_General_100_BIN2
                not in (N'skip.', N'once.', N'all.')
            then concat(
                N'missed must be skip, once or all, got ', coalesce(left(@missed, 100), N'null')
            )
        when @starts_at not between '20000101' and '21000101'
            or @ends_at not between '20000101' and '21000101'
            then N'starts_at and ends_at must be moments between the years 2000 and 2100'
        when @body is not null and @body_binary is not null
            then N'body and body_binary exclude each other'
    end;
    if @fault is not null
        exec rowq.InternalRefuse @fault;
    exec rowq.InternalCheckRange N'interval_seconds', @interval_seconds, 1, 315360000;

    exec rowq.InternalCheckMessage
        @message_type, @headers, @priority, null, null, null, @max_attempts, @group_key, null, null,
        null;
    -- What a tick adds to the headers may make them too long.
    exec rowq.InternalTickHeaders @headers, @schedule_name, @now, @tick_headers output;
    if datalength(@tick_headers) / 2 > 65536
        exec rowq.InternalCheckMessage
            @message_type, @tick_headers, @priority, null, null, null, @max_attempts, @group_key,
            null, null, null;
    exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;

    exec rowq.InternalCheckTimeZone @time_zone, @windows_name output;
    if @cron is not null
        exec rowq.InternalParseCron @cron, @bits output;
    exec rowq.InternalNextTick
        @bits, @interval_seconds, @windows_name, @starts_at, @ends_at, @now, @next_run_at output;
    if @next_run_at is null
        exec rowq.InternalRefuse
            N'the schedule has no tick within ten years or before ends_at';
end
go
