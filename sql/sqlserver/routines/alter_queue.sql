set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.AlterQueue
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
-- routine   AlterQueue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting unchanged.
-- promise   P15
-- locks     the queue, shared; the queue row; new deferred rows
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
    declare @begun int, @queue_id int;
    declare @old table (group_limit smallint not null);

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

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @queue_id output;

            -- Writes start here: if the client disconnects, xact_abort rolls back everything.
            set xact_abort on;
            update q
            set lease_seconds        = coalesce(@lease_seconds, q.lease_seconds),
                max_attempts         = coalesce(@max_attempts, q.max_attempts),
                backoff_base_seconds = coalesce(@backoff_base_seconds, q.backoff_base_seconds),
                backoff_factor       = coalesce(@backoff_factor, q.backoff_factor),
                backoff_cap_seconds  = coalesce(@backoff_cap_seconds, q.backoff_cap_seconds),
                backoff_jitter       = coalesce(@backoff_jitter, q.backoff_jitter),
                archive_days         = coalesce(@archive_days, q.archive_days),
                max_body_length      = coalesce(@max_body_length, q.max_body_length),
                group_limit          = coalesce(@group_limit, q.group_limit),
                group_after_dead     = coalesce(@group_after_dead, q.group_after_dead),
                group_pause_seconds  = coalesce(@group_pause_seconds, q.group_pause_seconds),
                max_leased           = coalesce(@max_leased, q.max_leased),
                rate_limit           = coalesce(@rate_limit, q.rate_limit),
                rate_seconds         = coalesce(@rate_seconds, q.rate_seconds),
                result_seconds       = coalesce(@result_seconds, q.result_seconds),
                history_days         = coalesce(@history_days, q.history_days)
            output deleted.group_limit into @old (group_limit)
            from rowq.queue q with (rowlock)
            where q.queue_key = convert(varbinary(402), @queue_name + N'.');
            if exists (select 1 from @old o where o.group_limit < @group_limit)
                exec rowq.InternalDeferGroupChecks @queue_id;

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
            delete from @old;
        end catch;
    end;

    select cast(@queue_name as nvarchar(200)) as queue_name, N'altered' as outcome;
end
go
