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
-- locks     the queue, exclusively, all rows of the queue, waiting for a second at most
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ704 RQ705 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    set lock_timeout 1000;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun int;
    declare @queue_id int;

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

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalRequireQueue @queue_name, @queue_id output;
            -- Refuse before a lock is asked for, where it is plain already.
            if coalesce(@force, 0) = 0
                exec rowq.InternalRefuseNotEmpty @queue_id, @queue_name;
            -- Wait for open enqueues, because their messages are not visible yet.
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
            -- Take back the work of this call only: its own transaction, or the caller's down to
            -- the savepoint. There is no way back to a savepoint in a transaction that is
            -- uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;

            -- 1222 means that lock_timeout has ended the wait. A call in the caller's transaction
            -- has xact_abort off for that, because a refusal must leave the caller's transaction as
            -- it was.
            if error_number() = 1222
                throw 52705, N'RQ705 queue_busy: open transactions hold the queue; try again', 1;
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

    select cast(@queue_name as nvarchar(200)) as queue_name, N'dropped' as outcome;
end
go
