set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalDequeue
    @queue_name nvarchar(max),
    @batch_size int,
    @worker_name nvarchar(max),
    @lease_seconds int,
    @part_id int output,
    @claim_id bigint output,
    @lease_until datetime2(6) output,
    @most_bytes bigint = null
as
begin
-- routine   InternalDequeue
-- version   1
-- purpose   Lease ready messages, up to @batch_size or @most_bytes, to one new claim; null when there is none.
-- promise   P02 P03 P05 P06 P07 P13 P18
-- locks     the part, shared; ready rows, passing over locked ones; the new claim row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   two routines share it, as a procedure cannot read the result of another
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun nvarchar(100);
    declare @default_seconds int;
    declare @is_paused bit;
    declare @taken int;
    declare @promoted int;

    -- A refusal must not doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- If the caller's transaction begins here, then at the caller's isolation level.
            if @owns_transaction = 0
                select @begun = m.value from rowq.meta m where m.name = N'schema_version';
            set transaction isolation level read committed;

            set @claim_id = null;
            set @taken = 0;
            exec rowq.InternalCheckRange N'batch_size', @batch_size, 1, 1000, @is_required = 1;
            exec rowq.InternalCheckRange N'lease_seconds', @lease_seconds, 1, 86400;
            if @worker_name is not null
                and len((@worker_name + N'.') collate Latin1_General_100_CI_AS_SC) > 201
                exec rowq.InternalRefuse N'worker_name is longer than 200 characters';

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalRequireQueue
                @queue_name, @part_id output, @lease_seconds = @default_seconds output,
                @is_paused = @is_paused output;
            exec rowq.InternalLockPartShared @part_id, @queue_name;

            if @owns_transaction = 0
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;
            if @is_paused = 0
            begin
                set @claim_id = next value for rowq.claim_seq;
                exec rowq.InternalPopReady
                    @part_id, @claim_id, @batch_size, @owns_transaction, @taken output;
                if @taken = 0
                begin
                    -- Nothing ready: what has become due meanwhile need not wait for maintain.
                    exec rowq.InternalPromote
                        @part_id, @batch_size, @owns_transaction, @promoted output;
                    if @promoted > 0
                        exec rowq.InternalPopReady
                            @part_id, @claim_id, @batch_size, @owns_transaction, @taken output;
                end;
            end;

            if @taken > 0
            begin
                set @lease_until = dateadd(
                    second, coalesce(@lease_seconds, @default_seconds), sysutcdatetime()
                );
                insert into rowq.claim with (rowlock) (part_id, claim_id, lease_until, worker_name)
                values (@part_id, @claim_id, @lease_until, @worker_name);
                if @taken > 1 and @most_bytes is not null
                    exec rowq.InternalTrimClaim @part_id, @claim_id, @most_bytes;
            end;
            else
                set @claim_id = null;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;

            -- The victim of a deadlock, with nothing else to lose, begins again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;
end
go
