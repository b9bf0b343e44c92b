set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.RunSchedule
    @queue_name nvarchar(max),
    @schedule_name nvarchar(max)
as
begin
-- routine   RunSchedule
-- version   1
-- purpose   Enqueue the message of a schedule now, even if paused; its next run is unchanged.
-- promise   P15
-- locks     the queue, shared; the schedule row; as enqueue
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @queue_id int;
    declare @schedule_key varbinary(402);
    declare @now datetime2(6);
    declare @message_id bigint;
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
            exec rowq.InternalEnterQueue @queue_name, @queue_id output;
            exec rowq.InternalRequireSchedule @queue_id, @schedule_name, @schedule_key output;
            exec rowq.InternalCheckTick @queue_id, @schedule_key;

            -- Writes start here. If the client disconnects, xact_abort rolls back the whole
            -- transaction.
            set xact_abort on;
            set @now = sysutcdatetime();
            exec rowq.InternalEnqueueTick
                @queue_id, @schedule_key, @now, @message_id output, @outcome output;
            if @outcome = N'enqueued'
                update s
                set last_run_at     = @now,
                    last_message_id = @message_id,
                    is_running      = iif(s.counts_from = N'end', 1, 0),
                    next_run_at     = iif(
                        s.counts_from = N'end' and s.next_run_at is not null,
                        dateadd(second, 1, @now), s.next_run_at
                    )
                from rowq.schedule s with (rowlock, forceseek)
                where s.queue_id = @queue_id
                  and s.schedule_key = @schedule_key;

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

    select @message_id as message_id, @outcome as outcome;
end
go
