set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.CreateQueue
    @queue_name nvarchar(max),
    @lease_seconds int = null,
    @max_attempts int = null,
    @backoff_base_seconds float = null,
    @backoff_factor float = null,
    @backoff_cap_seconds float = null,
    @backoff_jitter float = null,
    @archive_days int = null,
    @max_body_length int = null,
    @group_limit int = null,
    @group_after_dead nvarchar(max) = null,
    @group_pause_seconds float = null,
    @max_leased int = null,
    @rate_limit int = null,
    @rate_seconds float = null,
    @result_seconds float = null,
    @history_days int = null
as
begin
-- routine   CreateQueue
-- version   1
-- purpose   Create a queue; leave an existing queue unchanged.
-- promise   P15
-- locks     the new queue row, or the gap where it would be; its new rows
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
    declare @begun int, @queue_key varbinary(402), @queue_id int;

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

            exec rowq.InternalCheckSettings
                @queue_name, @lease_seconds, @max_attempts, @backoff_base_seconds,
                @backoff_factor, @backoff_cap_seconds, @backoff_jitter, @archive_days,
                @max_body_length, @group_limit, @group_after_dead, @group_pause_seconds,
                @max_leased, @rate_limit, @rate_seconds, @result_seconds,
                @history_days;
            set @queue_key = convert(varbinary(402), @queue_name + N'.');

            if @owns_transaction = 1
                begin transaction;
            -- Writes start here: if the client disconnects, xact_abort rolls back everything.
            set xact_abort on;
            set @queue_id = null;
            -- A second session that creates the same queue waits for this gap (holdlock), then
            -- finds the row.
            insert into rowq.queue (
                queue_key, queue_name, lease_seconds, max_attempts, backoff_base_seconds,
                backoff_factor, backoff_cap_seconds, backoff_jitter, archive_days,
                max_body_length, group_limit, group_after_dead, group_pause_seconds, max_leased,
                rate_limit, rate_seconds, result_seconds, history_days, created_at
            )
            select @queue_key, @queue_name, coalesce(@lease_seconds, 30),
                   coalesce(@max_attempts, 10), coalesce(@backoff_base_seconds, 5),
                   coalesce(@backoff_factor, 2), coalesce(@backoff_cap_seconds, 3600),
                   coalesce(@backoff_jitter, 0.2), coalesce(@archive_days, 0),
                   coalesce(@max_body_length, 1048576), coalesce(@group_limit, 1),
                   coalesce(@group_after_dead, N'continue'), coalesce(@group_pause_seconds, 0),
                   coalesce(@max_leased, 0), coalesce(@rate_limit, 0), coalesce(@rate_seconds, 1),
                   coalesce(@result_seconds, 0), coalesce(@history_days, 0), sysutcdatetime()
            where not exists (
                select 1
                from rowq.queue q with (rowlock, updlock, holdlock)
                where q.queue_key = @queue_key
            );
            if @@rowcount = 1
            begin
                set @queue_id = cast(scope_identity() as int);
                exec rowq.InternalAddQueueRows @queue_id;
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

    select cast(@queue_name as nvarchar(200)) as queue_name,
           iif(@queue_id is null, N'exists', N'created') as outcome;
end
go
