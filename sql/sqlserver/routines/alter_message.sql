set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.AlterMessage
    @queue_name nvarchar(max),
    @message_id bigint,
    @body nvarchar(max) = null,
    @body_binary varbinary(max) = null,
    @message_type nvarchar(max) = null,
    @headers nvarchar(max) = null,
    @priority int = null,
    @delay_seconds float = null,
    @run_at datetime2(6) = null,
    @max_attempts int = null,
    @expire_seconds float = null
as
begin
-- routine   AlterMessage
-- version   1
-- purpose   Change a waiting or dead message; null leaves a value unchanged.
-- promise   P15 P20 P21 P22 P36 P39
-- locks     the queue, shared; a blocked, delayed, dead, group_waiting or ready row, skipped if
--           locked; the message row: waits for a producer that has just named it as a predecessor;
--           a slot of its group, skipped if locked; new delayed, ready and expiry rows; as
--           InternalReleaseGroupSlots
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0),
        @tries_left int = 5, @begun int, @queue_id int, @max_body_length int,
        @checked_priority int = coalesce(@priority, 5),
        @expires_in float = nullif(@expire_seconds, 0), @expires bit = 0, @place nvarchar(20),
        @group_key varbinary(802), @lane smallint, @attempt smallint, @seq bigint,
        @was_due_at datetime2(6), @due_at datetime2(6), @now datetime2(6),
        @expires_at datetime2(6), @outcome nvarchar(20), @asked_ids nvarchar(max),
        @unknown_ids nvarchar(max);
    if @expires_in is not null
        set @expires = 1;

    -- With xact_abort on, an error would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- With implicit_transactions, begin the caller's transaction at its isolation level.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            if @message_id is null
                exec rowq.InternalRefuse N'message_id is required';
            if @body is null and @body_binary is null and @message_type is null
                and @headers is null and @priority is null and @delay_seconds is null
                and @run_at is null and @max_attempts is null and @expire_seconds is null
                exec rowq.InternalRefuse N'at least one value to change is required';
            if @body is not null and @body_binary is not null
                exec rowq.InternalRefuse N'body and body_binary are mutually exclusive';
            exec rowq.InternalCheckMessage
                @message_type, @headers, @checked_priority, @delay_seconds, @run_at, null,
                @max_attempts, null, null, null, @expires_in, null;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @queue_id output, @max_body_length = @max_body_length output;
            if datalength(@body) / 2 > @max_body_length
                or datalength(@body_binary) > @max_body_length
                exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;

            -- Writes start here: if the client disconnects, xact_abort rolls back everything.
            set xact_abort on;
            set @now = sysutcdatetime();
            set @due_at = coalesce(
                @run_at,
                dateadd(
                    microsecond,
                    cast(round((@delay_seconds - floor(@delay_seconds)) * 1e6, 0) as int),
                    dateadd(second, cast(floor(@delay_seconds) as int), @now)
                )
            );
            if @due_at < @now
                set @due_at = @now;
            set @expires_at = dateadd(
                microsecond,
                cast(round((@expires_in - floor(@expires_in)) * 1e6, 0) as int),
                dateadd(second, cast(floor(@expires_in) as int), @now)
            );
            exec rowq.InternalLockWaiting
                @queue_id, @message_id, @place output, @group_key output, @lane output,
                @attempt output, @seq output, @was_due_at output;
            if @place = N'dead' and @due_at is not null
            begin
                set @outcome = N'dead';
                set @due_at = null;
            end;
            else if @place is not null
            begin
                if @body is not null or @body_binary is not null or @message_type is not null
                    or @headers is not null or @max_attempts is not null
                    or @expire_seconds is not null
                    update m
                    set body         = case
                            when @body_binary is null then coalesce(@body, m.body)
                        end,
                        body_binary  = case
                            when @body is null then coalesce(@body_binary, m.body_binary)
                        end,
                        message_type = coalesce(@message_type, m.message_type),
                        headers      = coalesce(@headers, m.headers),
                        max_attempts = coalesce(@max_attempts, m.max_attempts),
                        expires_at   = case
                            when @expire_seconds is null then m.expires_at
                            else @expires_at
                        end
                    from rowq.message m with (rowlock, forceseek)
                    where m.queue_id = @queue_id
                      and m.message_id = @message_id;
                exec rowq.InternalAlterWaiting
                    @queue_id, @message_id, @place, @group_key, @lane, @attempt, @seq, @was_due_at,
                    @priority, @now, @expires, @owns_transaction, @due_at output;
                set @outcome = N'altered';
            end;
            else
            begin
                -- A message without a body is unknown, and so is a finished message that waits for
                -- the archiver. All others are leased.
                set @asked_ids = N'[' + cast(@message_id as nvarchar(20)) + N']';
                exec rowq.InternalUnknownOf @queue_id, @asked_ids, @unknown_ids output;
                set @outcome = iif(@unknown_ids is null, N'leased', N'not_found');
                set @due_at = null;
            end;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction; after writes it is already uncommittable.
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

    select @message_id as message_id, @outcome as outcome, @due_at as due_at;
end
go
