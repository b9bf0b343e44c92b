set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.GetHistory
    @queue_name nvarchar(max),
    @message_id bigint
as
begin
-- routine   GetHistory
-- version   1
-- purpose   Return the attempts of a message, oldest first, including the current lease.
-- promise   P37
-- locks     rows, shared while they are read, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   changes of an open transaction are not seen: a lease that it ends or extends is left
--           out
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int, @queue_id int, @enqueued_at datetime2(6), @due_at datetime2(6),
        @group_key nvarchar(400), @state nvarchar(20), @lane smallint, @attempt smallint,
        @claim_id bigint, @worker_name nvarchar(400), @leased_at datetime2(6),
        @lease_until datetime2(6), @finished_at datetime2(6), @waits_for bigint,
        @progress nvarchar(4000);

    begin try
        if @message_id is null
            exec rowq.InternalRefuse N'message_id is required';
        -- With implicit_transactions, begin the caller's transaction at its isolation level.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue @queue_name, @queue_id output;

        -- Read the current lease first. An attempt that ends after this read is in the history and
        -- not returned twice.
        select @enqueued_at = m.enqueued_at, @due_at = m.due_at, @group_key = m.group_key
        from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
        where m.queue_id = @queue_id
          and m.message_id = @message_id;
        if @enqueued_at is not null
            exec rowq.InternalLocateMessages
                @queue_id, @message_id, @enqueued_at, @group_key, @due_at output, @state output,
                @lane output, @attempt output, @claim_id output, @worker_name output,
                @lease_until output, @finished_at output, @waits_for output, @progress output,
                @leased_at output;

        select cast(a.attempt as int) as attempt, a.worker_name, a.leased_at, a.ended_at,
               a.outcome, a.error
        from (
            select h.attempt, h.worker_name, h.leased_at, h.ended_at, h.outcome, h.error,
                   h.claim_id
            from rowq.history h
                with (index (history_message_ix), rowlock, readpast, readcommittedlock, forceseek)
            where h.queue_id = @queue_id
              and h.message_id = @message_id
            union all
            select @attempt, @worker_name, @leased_at, cast(null as datetime2(6)),
                   cast(null as nvarchar(20)), cast(null as nvarchar(4000)), @claim_id
            where @claim_id is not null
              and not exists (
                  select 1
                  from rowq.history h
                      with (
                          index (history_message_ix), rowlock, readpast, readcommittedlock,
                          forceseek
                      )
                  where h.queue_id = @queue_id
                    and h.message_id = @message_id
                    and h.claim_id = @claim_id
              )
        ) a
        order by iif(a.ended_at is null, 1, 0), a.ended_at, a.claim_id
        option (loop join, maxdop 1, keepfixed plan);
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
