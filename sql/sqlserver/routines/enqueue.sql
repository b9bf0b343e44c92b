set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Enqueue
    @queue_name nvarchar(max),
    @body nvarchar(max) = null,
    @body_binary varbinary(max) = null,
    @message_type nvarchar(max) = null,
    @headers nvarchar(max) = null,
    @priority int = 5,
    @delay_seconds float = null,
    @run_at datetime2(6) = null,
    @dedup_key nvarchar(max) = null,
    @max_attempts int = null,
    @group_key nvarchar(max) = null,
    @predecessor_ids nvarchar(max) = null,
    @on_predecessor_dead nvarchar(max) = null,
    @expire_seconds float = null,
    @producer_name nvarchar(max) = null
as
begin
-- routine   Enqueue
-- version   1
-- purpose   Enqueue a message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     new rows; the queue, shared; message rows of predecessors, shared, without waiting;
--           with a dedup key, waits for open enqueues of it; with a group key, waits for sessions
--           that open or close the group
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
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
    declare @max_body_length int;
    declare @group_limit int;
    declare @group_bytes varbinary(802);
    declare @has_slot bit;
    declare @state nvarchar(20);
    declare @predecessor_id bigint;
    declare @remaining_ids nvarchar(max);
    declare @now datetime2(6);
    declare @due_at datetime2(6);
    declare @expires_at datetime2(6);
    declare @lane smallint;
    declare @is_open bit;
    declare @message_id bigint;
    declare @owner bigint;
    declare @outcome nvarchar(20);

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read opens the caller's transaction, at the caller's
            -- isolation level. @begun keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            set @owner = null;
            if @body is not null and @body_binary is not null
                exec rowq.InternalRefuse N'body and body_binary are mutually exclusive';
            exec rowq.InternalCheckMessage
                @message_type, @headers, @priority, @delay_seconds, @run_at, @dedup_key,
                @max_attempts, @group_key, @predecessor_ids, @on_predecessor_dead, @expire_seconds,
                @producer_name;
            set @lane = @priority * 2 + 1;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @queue_id output, @max_body_length = @max_body_length output,
                @group_limit = @group_limit output;
            if datalength(@body) / 2 > @max_body_length
                or datalength(@body_binary) > @max_body_length
                exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;

            exec rowq.InternalNextMessageId @message_id output;
            if @predecessor_ids is not null
                and @message_id <= (
                    select max(cast(j.value as bigint)) from openjson(@predecessor_ids) j
                )
                exec rowq.InternalRefuse N'predecessor_ids must name existing messages';

            -- Writes start here. If the client disconnects, xact_abort rolls back the transaction.
            set xact_abort on;
            if @dedup_key is not null
                exec rowq.InternalReserveDedupKey @queue_id, @dedup_key, @message_id, @owner output;

            if @owner is null
            begin
                set @now = sysutcdatetime();
                set @due_at = coalesce(
                    @run_at,
                    dateadd(
                        microsecond,
                        cast(round((@delay_seconds - floor(@delay_seconds)) * 1e6, 0) as int),
                        dateadd(second, cast(floor(@delay_seconds) as int), @now)
                    )
                );
                if @due_at <= @now
                    set @due_at = null;
                set @state = N'free';
                if @predecessor_ids is not null
                    exec rowq.InternalAwaitPredecessor
                        @queue_id, @predecessor_ids, @on_predecessor_dead, @state output,
                        @predecessor_id output, @remaining_ids output;
                set @has_slot = 1;
                if @group_key is not null
                begin
                    set @group_bytes = convert(varbinary(802), @group_key + N'.');
                    if @due_at is null and @state = N'free'
                        exec rowq.InternalTakeGroupSlot
                            @queue_id, @group_bytes, @group_limit, @has_slot output;
                    -- Taking a slot may have waited; a ready message's position is the current
                    -- time.
                    set @now = sysutcdatetime();
                end;
                set @expires_at = dateadd(
                    microsecond,
                    cast(round((@expire_seconds - floor(@expire_seconds)) * 1e6, 0) as int),
                    dateadd(second, cast(floor(@expire_seconds) as int), @now)
                );
                insert into rowq.message with (rowlock) (
                    queue_id, message_id, max_attempts, enqueued_at, due_at, expires_at,
                    message_type, dedup_key, headers, body, body_binary, group_key, producer_name
                )
                values (
                    @queue_id, @message_id, @max_attempts, @now, @due_at, @expires_at,
                    @message_type, @dedup_key, @headers, @body, @body_binary, @group_key,
                    @producer_name
                );

                -- The lane of the default priority is always open.
                if @lane <> 11
                begin
                    select @is_open = l.is_open
                    from rowq.lane l with (readuncommitted, forceseek)
                    where l.queue_id = @queue_id
                      and l.lane = @lane;
                    if @is_open = 0
                        exec rowq.InternalOpenLanes @queue_id, @lane;
                end;

                if @state <> N'free'
                    exec rowq.InternalBlock
                        @queue_id, @message_id, @lane, @due_at, @group_bytes,
                        @on_predecessor_dead, @state, @predecessor_id, @remaining_ids;
                else if @due_at is null and @has_slot = 1
                    insert into rowq.ready with (rowlock) (queue_id, lane, seq, message_id)
                    values (
                        @queue_id, @lane, datediff_big(microsecond, '19700101', @now), @message_id
                    );
                else if @due_at is null
                    insert into rowq.group_waiting with (rowlock)
                        (queue_id, group_key, message_id, lane)
                    values (@queue_id, @group_bytes, @message_id, @lane);
                else
                    insert into rowq.delayed with (rowlock)
                        (queue_id, due_at, message_id, lane, group_key)
                    values (@queue_id, @due_at, @message_id, @lane, @group_bytes);
                -- If the message is not ready, maintain finds it by other keys.
                if @expires_at is not null
                    insert into rowq.expiry with (rowlock)
                        (queue_id, expires_at, expiry_id, message_id, lane, seq)
                    values (
                        @queue_id,
                        iif(
                            @expires_at > dateadd(day, 1, @now), dateadd(day, 1, @now), @expires_at
                        ),
                        @message_id, @message_id, @lane,
                        datediff_big(microsecond, '19700101', @now)
                    );
            end;
            set @outcome = iif(@owner is null, N'enqueued', N'duplicate');

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction. If the call had written, it is uncommittable.
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

    select coalesce(@owner, @message_id) as message_id, @outcome as outcome;
end
go
