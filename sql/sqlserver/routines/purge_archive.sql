set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.PurgeArchive
    @queue_name nvarchar(max),
    @batch_size int = 1000
as
begin
-- routine   PurgeArchive
-- version   1
-- purpose   Delete archived messages past archive_days and attempts past history_days.
-- promise   P19 P37
-- locks     archive and history rows, passing over locked ones; the archive, for a moment; a row of
--           lane, tried
-- commits   where the caller has no transaction, after each 1000 messages; never the caller's
-- errors    RQ701 RQ711
-- differs   in an open transaction the archive keeps its partitions
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int;
    declare @queue_id int;
    declare @archive_days int;
    declare @history_days int;
    declare @before datetime2(6);
    declare @step int;
    declare @done int;
    declare @purged int = 0;
    declare @attempts int = 0;
    declare @dropped int = 0;

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            exec rowq.InternalCheckBatchSize @batch_size;
            exec rowq.InternalRequireQueue
                @queue_name, @queue_id output, @archive_days = @archive_days output,
                @history_days = @history_days output;
            if @owns_transaction = 1
                exec rowq.InternalDropDays @dropped output;
            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            set @before = dateadd(day, -@archive_days, sysutcdatetime());
            while @purged < @batch_size
            begin
                set @step = iif(@batch_size - @purged < 1000, @batch_size - @purged, 1000);
                exec rowq.InternalPurgeArchive @queue_id, @before, @step, @done output;
                set @purged += @done;
                if @done < @step
                    break;
            end;
            while @attempts < @batch_size
            begin
                set @step = iif(@batch_size - @attempts < 1000, @batch_size - @attempts, 1000);
                exec rowq.InternalPurgeHistory
                    @queue_id, @history_days, @step, @owns_transaction, @done output;
                set @attempts += @done;
                if @done < @step
                    break;
            end;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has made
            -- it uncommittable if the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            if @tries_left = 0
                throw;
        end catch;
    end;

    select @purged + @attempts as purged, @dropped as partitions_dropped;
end
go
