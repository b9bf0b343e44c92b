set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Publish
    @topic nvarchar(max),
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
    @expire_seconds float = null,
    @producer_name nvarchar(max) = null
as
begin
-- routine   Publish
-- version   1
-- purpose   Enqueue a message to each queue bound to a topic.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as InternalBoundQueues; as InternalStore, in the order of queue names
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @error nvarchar(200);
    declare @messages nvarchar(300);
    declare @queues nvarchar(max);
    declare @max_body_length int;
    declare @turn int;
    declare @queue_id int;
    declare @group_limit int;
    declare @message_id bigint;
    declare @outcome nvarchar(20);
    -- turn is the index of a queue in @queues.
    declare @stored table (
        turn       int not null primary key,
        message_id bigint not null,
        outcome    nvarchar(20) not null
    );

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

            exec rowq.InternalTopicError N'topic', @topic, 0, @error output;
            if @error is not null
                exec rowq.InternalRefuse @error;
            if @body is not null and @body_binary is not null
                exec rowq.InternalRefuse N'body and body_binary are mutually exclusive';
            exec rowq.InternalCheckMessage
                @message_type, @headers, @priority, @delay_seconds, @run_at, @dedup_key,
                @max_attempts, @group_key, null, null, @expire_seconds, @producer_name;
            set @message_type = coalesce(@message_type, @topic);

            if @owns_transaction = 1
                begin transaction;
            set @messages = concat(N'[{"topic":"', @topic, N'"}]');
            exec rowq.InternalBoundQueues @messages, @queues output;
            -- Every queue must accept the body.
            set @max_body_length = 33554432;
            select top (1) @max_body_length = q.max_body_length
            from openjson(@queues) with (max_body_length int) q
            order by q.max_body_length;
            exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;

            -- Writes start here. If the client disconnects, xact_abort rolls back the transaction.
            set xact_abort on;
            set @turn = 0;
            while 1 = 1
            begin
                select @queue_id = cast(json_value(q.value, N'$.queue_id') as int),
                       @group_limit = cast(json_value(q.value, N'$.group_limit') as int)
                from openjson(@queues) q
                where q.[key] = cast(@turn as nvarchar(10));
                if @@rowcount = 0
                    break;
                exec rowq.InternalStore
                    @queue_id, @group_limit, @body, @body_binary, @message_type, @headers,
                    @priority,
                    @delay_seconds, @run_at, @dedup_key, @max_attempts, @group_key,
                    @expire_seconds, @producer_name, @message_id output, @outcome output;
                insert into @stored (turn, message_id, outcome)
                values (@turn, @message_id, @outcome);
                set @turn += 1;
            end;

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
            delete from @stored;
        end catch;
    end;

    select cast(json_value(q.value, N'$.queue_name') as nvarchar(200)) as queue_name, s.message_id,
           s.outcome
    from openjson(@queues) q
    inner join @stored s on s.turn = cast(q.[key] as int)
    order by s.turn
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go
