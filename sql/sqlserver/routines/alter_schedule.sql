set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.AlterSchedule
    @queue_name nvarchar(max),
    @schedule_name nvarchar(max),
    @cron nvarchar(max) = null,
    @interval_seconds float = null,
    @time_zone nvarchar(max) = null,
    @body nvarchar(max) = null,
    @body_binary varbinary(max) = null,
    @message_type nvarchar(max) = null,
    @headers nvarchar(max) = null,
    @priority int = null,
    @max_attempts int = null,
    @group_key nvarchar(max) = null,
    @missed nvarchar(max) = null,
    @overlap bit = null,
    @starts_at datetime2(6) = null,
    @ends_at datetime2(6) = null,
    @is_paused bit = null,
    @counts_from nvarchar(max) = null
as
begin
-- routine   AlterSchedule
-- version   1
-- purpose   Change, pause or resume a schedule; null leaves a setting unchanged.
-- promise   P15 P31 P48
-- locks     the queue, shared; the schedule row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
-- differs   Windows names of time zones are accepted too
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @begun int;
    declare @queue_id int;
    declare @max_body_length int;
    declare @schedule_key varbinary(402);
    declare @next_run_at datetime2(6);
    declare @counted_from nvarchar(20);
    declare @is_running bit;
    -- A new kind of time, or of body, replaces the other.
    declare @is_timed bit = iif(@cron is null and @interval_seconds is null, 0, 1);
    declare @has_body bit = iif(@body is null and @body_binary is null, 0, 1);
    -- A schedule that can no longer run can still be paused.
    declare @only_pauses bit = iif(
        @is_paused = 1 and @cron is null and @interval_seconds is null and @time_zone is null
            and @body is null and @body_binary is null and @message_type is null
            and @headers is null and @priority is null and @max_attempts is null
            and @group_key is null and @missed is null and @overlap is null
            and @starts_at is null and @ends_at is null and @counts_from is null,
        1, 0
    );

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    begin try
        -- Under implicit_transactions this read begins the caller's transaction, at the caller's
        -- isolation level. @begun keeps the value out of the results.
        if @owns_transaction = 0
            select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;

        if @owns_transaction = 1
            begin transaction;
        exec rowq.InternalEnterQueue
            @queue_name, @queue_id output, @max_body_length = @max_body_length output;
        exec rowq.InternalRequireSchedule @queue_id, @schedule_name, @schedule_key output;
        select @cron = iif(@is_timed = 1, @cron, s.cron),
               @interval_seconds = iif(@is_timed = 1, @interval_seconds, s.interval_seconds),
               @time_zone = coalesce(@time_zone, s.time_zone),
               @body = iif(@has_body = 1, @body, s.body),
               @body_binary = iif(@has_body = 1, @body_binary, s.body_binary),
               @message_type = coalesce(@message_type, s.message_type),
               @headers = coalesce(@headers, s.headers),
               @priority = coalesce(@priority, s.priority),
               @max_attempts = coalesce(@max_attempts, s.max_attempts),
               @group_key = coalesce(@group_key, s.group_key),
               @missed = coalesce(@missed, s.missed),
               @overlap = coalesce(@overlap, s.overlap),
               @starts_at = coalesce(@starts_at, s.starts_at),
               @ends_at = coalesce(@ends_at, s.ends_at),
               @is_paused = coalesce(@is_paused, s.is_paused),
               @counted_from = s.counts_from, @is_running = s.is_running
        from rowq.schedule s with (forceseek)
        where s.queue_id = @queue_id
          and s.schedule_key = @schedule_key;
        set @counts_from = coalesce(@counts_from, @counted_from);
        set @is_running = iif(
            @counts_from = N'end' and (@is_running = 1 or @counted_from = N'start'), 1, 0
        );
        if @counts_from = N'end'
            set @overlap = 0;
        if @only_pauses = 0
            exec rowq.InternalCheckSchedule
                @schedule_name, @cron, @interval_seconds, @time_zone, @missed, @starts_at,
                @ends_at, @counts_from, @message_type, @headers, @priority, @max_attempts,
                @group_key, @body, @body_binary, @max_body_length, @next_run_at output;
        if @is_running = 1 and @starts_at <= sysutcdatetime()
            set @next_run_at = dateadd(second, 1, sysutcdatetime());
        if @is_paused = 1
            set @next_run_at = null;

        -- Writes start here. If the client disconnects, xact_abort rolls back the whole
        -- transaction.
        set xact_abort on;
        update s
        set cron             = @cron,
            interval_seconds = @interval_seconds,
            time_zone        = @time_zone,
            missed           = @missed,
            overlap          = @overlap,
            starts_at        = @starts_at,
            ends_at          = @ends_at,
            message_type     = @message_type,
            headers          = @headers,
            priority         = @priority,
            group_key        = @group_key,
            max_attempts     = @max_attempts,
            body             = @body,
            body_binary      = @body_binary,
            is_paused        = @is_paused,
            next_run_at      = @next_run_at,
            last_error       = null,
            counts_from      = @counts_from,
            is_running       = @is_running
        from rowq.schedule s with (rowlock, forceseek)
        where s.queue_id = @queue_id
          and s.schedule_key = @schedule_key;

        if @owns_transaction = 1
            commit transaction;
    end try
    begin catch
        -- Do not end the caller's transaction. If the call had written, it is already
        -- uncommittable.
        if @owns_transaction = 1 and @@trancount > 0
            rollback transaction;

        -- Do not retry a deadlock: the parameters now hold values that another session may have
        -- changed.
        throw;
    end catch;

    select cast(@schedule_name as nvarchar(200)) as schedule_name, N'altered' as outcome,
           @next_run_at as next_run_at;
end
go
