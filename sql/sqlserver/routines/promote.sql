set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Promote
    @queue_name nvarchar(max),
    @batch_size int = 1000
as
begin
-- routine   Promote
-- version   1
-- purpose   Make delayed messages ready that are due.
-- promise   P11 P45
-- locks     the queue, shared; delayed rows, skipping locked ones; new ready rows; rows of groups:
--           waits up to 100 ms
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   in the caller's transaction, messages that must join a group are skipped
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5, @begun int, @queue_id int, @promoted int;

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

            exec rowq.InternalCheckBatchSize @batch_size;

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue @queue_name, @queue_id output;

            -- Writes start here. If the client disconnects, xact_abort rolls back the whole
            -- transaction.
            set xact_abort on;
            exec rowq.InternalPromote @queue_id, @batch_size, @owns_transaction, @promoted output;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction. If the call had written, it is already
            -- uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- Retry a deadlock (1205), or a lock timeout while taking a group slot, in our own
            -- transaction.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryTakeGroupSlot'
                    ),
                @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            if @tries_left = 0
                throw;
        end catch;
    end;

    select @promoted as promoted;
end
go
