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
    @max_body_length int = null
as
begin
-- routine   AlterQueue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting as it is.
-- promise   P15
-- locks     the queue row
-- commits   never; one statement, a transaction of its own where the caller has none
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort off;
    declare @begun int;

    begin try
        exec rowq.InternalCheckSettings
            @queue_name, @lease_seconds, @max_attempts, @backoff_base_seconds, @backoff_factor,
            @backoff_cap_seconds, @backoff_jitter, @archive_days, @max_body_length;
        -- Under implicit_transactions this read begins the caller's transaction. Read before we
        -- change the isolation level, so that the transaction has the level the caller chose.
        -- @begun only keeps the value out of the caller's results.
        select @begun = p.part_id from rowq.part p where p.part_id = 0;
        set transaction isolation level read committed;

        update q
        set lease_seconds        = coalesce(@lease_seconds, q.lease_seconds),
            max_attempts         = coalesce(@max_attempts, q.max_attempts),
            backoff_base_seconds = coalesce(@backoff_base_seconds, q.backoff_base_seconds),
            backoff_factor       = coalesce(@backoff_factor, q.backoff_factor),
            backoff_cap_seconds  = coalesce(@backoff_cap_seconds, q.backoff_cap_seconds),
            backoff_jitter       = coalesce(@backoff_jitter, q.backoff_jitter),
            archive_days         = coalesce(@archive_days, q.archive_days),
            max_body_length      = coalesce(@max_body_length, q.max_body_length)
        from rowq.queue q with (rowlock)
        where q.queue_key = convert(varbinary(402), @queue_name + N'.');
        if @@rowcount = 0
            exec rowq.InternalRefuseQueue @queue_name;

        select cast(@queue_name as nvarchar(200)) as queue_name, N'altered' as outcome;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
