set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.GetMessage
    @queue_name nvarchar(max),
    @message_id bigint
as
begin
-- routine   GetMessage
-- version   1
-- purpose   Return the state of a message and all its data, or no row if unknown.
-- promise   P20
-- locks     rows, shared while they are read, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   changes of open transactions are not visible
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int;
    declare @queue_id int;
    declare @max_attempts int;
    declare @enqueued_at datetime2(6);
    declare @due_at datetime2(6);
    declare @state nvarchar(20);
    declare @lane smallint;
    declare @attempt smallint;
    declare @claim_id bigint;
    declare @worker_name nvarchar(400);
    declare @lease_until datetime2(6);
    declare @finished_at datetime2(6);
    declare @group_key nvarchar(400);
    declare @waits_for bigint;
    declare @progress nvarchar(4000);

    begin try
        if @message_id is null
            exec rowq.InternalRefuse N'message_id is required';
        -- Under implicit_transactions this read opens the caller's transaction, at the caller's
        -- isolation level. @begun keeps the value out of the caller's results.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue
            @queue_name, @queue_id output, @max_attempts = @max_attempts output;

        select @enqueued_at = m.enqueued_at, @due_at = m.due_at, @group_key = m.group_key
        from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
        where m.queue_id = @queue_id
          and m.message_id = @message_id;

        if @enqueued_at is not null
        begin
            exec rowq.InternalLocateMessages
                @queue_id, @message_id, @enqueued_at, @group_key, @due_at output, @state output,
                @lane output, @attempt output, @claim_id output, @worker_name output,
                @lease_until output, @finished_at output, @waits_for output, @progress output;
            select m.message_id, @state as state, cast(@lane / 2 as int) as priority,
                   cast(@attempt as int) as attempt,
                   cast(coalesce(m.max_attempts, @max_attempts) as int) as max_attempts,
                   m.message_type, m.headers, m.body, m.body_binary, m.dedup_key, m.enqueued_at,
                   @due_at as due_at, @claim_id as claim_id, @worker_name as worker_name,
                   @lease_until as lease_until, @finished_at as finished_at, m.last_error,
                   m.group_key, @waits_for as waits_for, m.expires_at,
                   @progress as progress, m.producer_name
            from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
            where m.queue_id = @queue_id
              and m.message_id = @message_id;
        end;
        else
            select a.message_id, a.state, cast(a.lane / 2 as int) as priority,
                   cast(a.attempt as int) as attempt, cast(null as int) as max_attempts,
                   a.message_type, a.headers, a.body, a.body_binary, a.dedup_key, a.enqueued_at,
                   cast(null as datetime2(6)) as due_at, cast(null as bigint) as claim_id,
                   cast(null as nvarchar(400)) as worker_name,
                   cast(null as datetime2(6)) as lease_until, a.finished_at,
                   cast(null as nvarchar(4000)) as last_error, a.group_key,
                   cast(null as bigint) as waits_for, cast(null as datetime2(6)) as expires_at,
                   cast(null as nvarchar(4000)) as progress, a.producer_name
            from rowq.archived a
                with (index (archived_message_ix), rowlock, readpast, readcommittedlock)
            where a.queue_id = @queue_id
              and a.message_id = @message_id;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
