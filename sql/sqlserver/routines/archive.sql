set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Archive
    @queue_name nvarchar(max),
    @batch_size int = 1000
as
begin
-- routine   Archive
-- version   1
-- purpose   Move finished messages to the archive, if the queue has archive_days.
-- promise   P19 P45
-- locks     finished rows, skipping locked ones; message rows; new archive rows
-- commits   if the caller has no transaction, after every 1000 messages; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int, @queue_id int, @step int, @done int;
    declare @archived int = 0;

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

            exec rowq.InternalCheckBatchSize @batch_size;
            exec rowq.InternalRequireQueue @queue_name, @queue_id output;
            if @owns_transaction = 1
                exec rowq.InternalOpenDays @queue_id;
            -- Writes start here: if the client disconnects, xact_abort rolls back everything.
            set xact_abort on;
            while @archived < @batch_size
            begin
                set @step = iif(@batch_size - @archived < 1000, @batch_size - @archived, 1000);
                if @owns_transaction = 1
                    begin transaction;
                exec rowq.InternalArchive @queue_id, @step, @done output;
                if @owns_transaction = 1
                    commit transaction;
                set @archived += @done;
                if @done < @step
                    break;
            end;
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

    select @archived as archived;
end
go
