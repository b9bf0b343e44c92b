set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.CreateSchedule
    @queue_name nvarchar(max),
    @schedule_name nvarchar(max),
    @cron nvarchar(max) = null,
    @interval_seconds float = null,
    @time_zone nvarchar(max) = 'UTC',
    @body nvarchar(max) = null,
    @body_binary varbinary(max) = null,
    @message_type nvarchar(max) = null,
    @headers nvarchar(max) = null,
    @priority int = 5,
    @max_attempts int = null,
    @group_key nvarchar(max) = null,
    @missed nvarchar(max) = 'once',
    @overlap bit = 1,
    @starts_at datetime2(6) = null,
    @ends_at datetime2(6) = null,
    @counts_from nvarchar(max) = 'start'
as
begin
-- routine   CreateSchedule
-- version   1
-- purpose   Create a schedule that enqueues a message by cron or interval.
-- promise   P15 P30 P31 P48
-- locks     the queue, shared; the new schedule row; waits for a session that creates the same one
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   Windows names of time zones are accepted too
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @queue_id int;
    declare @max_body_length int;
    declare @schedule_key varbinary(402);
    declare @first_run_at datetime2(6);
    declare @next_run_at datetime2(6);
    declare @outcome nvarchar(20);

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction, at the
            -- caller's isolation level. @begun keeps the value out of the results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @queue_id output, @max_body_length = @max_body_length output;
            set @starts_at = coalesce(@starts_at, sysutcdatetime());
            exec rowq.InternalCheckSchedule
                @schedule_name, @cron, @interval_seconds, @time_zone, @missed, @starts_at,
                @ends_at, @counts_from, @message_type, @headers, @priority, @max_attempts,
                @group_key, @body, @body_binary, @max_body_length, @first_run_at output;
            set @schedule_key = convert(varbinary(402), @schedule_name + N'.');

            -- Writes start here. If the client disconnects, xact_abort rolls back the whole
            -- transaction.
            set xact_abort on;
            set @outcome = N'created';
            set @next_run_at = @first_run_at;
            -- If another session has just added the name, this inserts nothing and raises no error
            -- (ignore_dup_key).
            insert into rowq.schedule with (rowlock) (
                queue_id, schedule_key, schedule_name, cron, interval_seconds, time_zone, missed,
                overlap, starts_at, ends_at, message_type, headers, priority, group_key,
                max_attempts, body, body_binary, next_run_at, counts_from
            )
            select @queue_id, @schedule_key, @schedule_name, @cron, @interval_seconds, @time_zone,
                   @missed, iif(@counts_from = N'end', 0, coalesce(@overlap, 1)), @starts_at,
                   @ends_at, @message_type, @headers, @priority, @group_key, @max_attempts, @body,
                   @body_binary, @first_run_at, @counts_from
            where not exists (
                select 1
                from rowq.schedule s with (rowlock, readcommittedlock, forceseek)
                where s.queue_id = @queue_id
                  and s.schedule_key = @schedule_key
            );
            if @@rowcount = 0
            begin
                -- Null if the schedule has just been dropped.
                set @outcome = N'exists';
                set @next_run_at = null;
                select @next_run_at = s.next_run_at
                from rowq.schedule s with (rowlock, readcommittedlock, forceseek)
                where s.queue_id = @queue_id
                  and s.schedule_key = @schedule_key;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction. If the call had written, it is already
            -- uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- Retry a deadlock (1205) in our own transaction.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            if @tries_left = 0
                throw;
        end catch;
    end;

    select cast(@schedule_name as nvarchar(200)) as schedule_name, @outcome as outcome,
           @next_run_at as next_run_at;
end
go
