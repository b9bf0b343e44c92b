set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.DropQueue
    @queue_name nvarchar(max),
    @force bit = 0
as
begin
-- routine   DropQueue
-- version   1
-- purpose   Drop an empty queue or, with force, a queue with its messages and its archive.
-- promise   P02 P15
-- locks     the queue, exclusively, and all rows of the queue; waits up to 1 s
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ704 RQ705 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    set lock_timeout 1000;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun int, @queue_id int;

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

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalRequireQueue @queue_name, @queue_id output;
            -- Check without the lock first.
            if coalesce(@force, 0) = 0
                exec rowq.InternalRefuseNotEmpty @queue_id, @queue_name;
            -- Wait for open enqueues: their messages are not visible yet.
            exec rowq.InternalLockQueueExclusive @queue_id, @queue_name;
            if coalesce(@force, 0) = 0
                exec rowq.InternalRefuseNotEmpty @queue_id, @queue_name;

            if @owns_transaction = 0
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;
            exec rowq.InternalDeleteQueue @queue_id;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Roll back only this call: its own transaction, or the caller's to the savepoint,
            -- unless it is uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;

            -- 1222: lock timeout. In the caller's transaction xact_abort is off, so that it leaves
            -- that intact.
            if error_number() = 1222
                throw 52705, N'RQ705 queue_busy: open transactions use the queue; retry', 1;
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

    select cast(@queue_name as nvarchar(200)) as queue_name, N'dropped' as outcome;
end
go
