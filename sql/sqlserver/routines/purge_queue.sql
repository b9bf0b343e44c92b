set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.PurgeQueue
    @queue_name nvarchar(max),
    @include_dead bit = 0,
    @max_messages int = null
as
begin
-- routine   PurgeQueue
-- version   1
-- purpose   Delete ready, delayed and blocked messages; leased ones stay with their workers.
-- promise   P15
-- locks     the queue, shared; blocked, group_waiting, ready, delayed, dead rows, skipping locked
--           ones; message rows of groups, waits for producers that have named one as a predecessor;
--           then as complete
-- commits   if the caller has no transaction, after every 4000 messages; never the caller's
-- errors    RQ701 RQ711
-- differs   commits in steps: one transaction could hold a million row locks
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @begun int, @queue_id int;
    -- Purge blocked messages first: nothing may resume them or pass a slot to them.
    declare @stage smallint = -2;
    declare @next smallint;
    declare @from_key varbinary(802) = 0x;
    declare @after_key varbinary(802);
    declare @from bigint = 0;
    declare @after bigint, @step int, @removed int;
    declare @all_removed bigint = 0;

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

            exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000;
            while @stage < iif(@include_dead = 1, 22, 21)
            begin
                set @step = iif(
                    @max_messages - @all_removed < 4000, @max_messages - @all_removed, 4000
                );
                if @step = 0
                    break;
                set @next = @stage;
                set @after_key = @from_key;
                set @after = @from;
                if @owns_transaction = 1
                    begin transaction;
                exec rowq.InternalEnterQueue @queue_name, @queue_id output;
                -- Writes start here: if the client disconnects, xact_abort rolls back everything.
                set xact_abort on;
                exec rowq.InternalPurgeStep
                    @queue_id, @step, @owns_transaction, @next output, @after_key output,
                    @after output, @removed output;
                if @owns_transaction = 1
                    commit transaction;
                set @stage = @next;
                set @from_key = @after_key;
                set @from = @after;
                set @all_removed += @removed;
            end;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction; after writes it is already uncommittable.
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

    select @all_removed as removed;
end
go
