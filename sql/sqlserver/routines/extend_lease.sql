set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ExtendLease
    @queue_name nvarchar(max),
    @claim_id bigint,
    @lease_seconds int = null,
    @progress nvarchar(max) = null
as
begin
-- routine   ExtendLease
-- version   1
-- purpose   Extend the lease of a claim to lease_seconds from now; it is never shortened.
-- promise   P08 P34
-- locks     the claim row
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5, @begun int, @queue_id int, @default_seconds int,
        @held_until datetime2(6), @lease_until datetime2(6), @has_cancels bit,
        @cancel_ids nvarchar(max);
    -- This collation counts an emoji as 1 character.
    declare @text nvarchar(4000) = left(@progress collate Latin1_General_100_CI_AS_SC, 2000);

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction, before the
            -- isolation level changes. @begun only keeps the value out of the results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            if @claim_id is null
                exec rowq.InternalRefuse N'claim_id is required';
            if @lease_seconds not between 1 and 86400
                exec rowq.InternalCheckRange N'lease_seconds', @lease_seconds, 1, 86400;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalRequireQueue
                @queue_name, @queue_id output, @lease_seconds = @default_seconds output;
            exec rowq.InternalLockClaim
                @queue_id, @claim_id, null, @held_until output, @has_cancels output;

            -- Writes start here. If the client disconnects, xact_abort rolls back the whole
            -- transaction.
            set xact_abort on;
            set @lease_until = dateadd(
                second, coalesce(@lease_seconds, @default_seconds), sysutcdatetime()
            );
            if @lease_until < @held_until
                set @lease_until = @held_until;
            update c
            set lease_until = @lease_until,
                progress    = coalesce(@text, c.progress)
            from rowq.claim c with (rowlock, forceseek)
            where c.queue_id = @queue_id
              and c.claim_id = @claim_id;
            -- Read the rows: messages that have left the claim are no longer marked in it.
            set @cancel_ids = null;
            if @has_cancels = 1
                select @cancel_ids = iif(
                           count(*) = 0, null,
                           concat(
                               N'[', string_agg(cast(l.message_id as nvarchar(max)), N','), N']'
                           )
                       )
                from rowq.leased l with (forceseek)
                where l.queue_id = @queue_id
                  and l.claim_id = @claim_id
                  and l.is_cancelled = 1
                option (maxdop 1, keepfixed plan);

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

    select @claim_id as claim_id, @lease_until as lease_until, @cancel_ids as cancel_ids;
end
go
