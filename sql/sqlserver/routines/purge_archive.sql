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
-- purpose   Delete archived messages older than the queue's archive_days, and drop partitions that no queue needs.
-- promise   P19
-- locks     archive rows, passing over locked ones; the archive, for a moment
-- commits   where the caller has no transaction, after each 1000 messages; never the caller's
-- errors    RQ701 RQ711
-- differs   in an open transaction the archive keeps its partitions
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun nvarchar(100);
    declare @part_id int;
    declare @archive_days int;
    declare @before datetime2(6);
    declare @step int;
    declare @done int;
    declare @purged int = 0;
    declare @dropped int = 0;

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

            exec rowq.InternalCheckBatchSize @batch_size;
            exec rowq.InternalRequireQueue
                @queue_name, @part_id output, @archive_days = @archive_days output;
            if @owns_transaction = 1
                exec rowq.InternalDropDays @dropped output;
            else
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;
            set @before = dateadd(day, -@archive_days, sysutcdatetime());
            while @purged < @batch_size
            begin
                set @step = iif(@batch_size - @purged < 1000, @batch_size - @purged, 1000);
                exec rowq.InternalPurgeArchive @part_id, @before, @step, @done output;
                set @purged += @done;
                if @done < @step
                    break;
            end;
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

    select @purged as purged, @dropped as partitions_dropped;
end
go
