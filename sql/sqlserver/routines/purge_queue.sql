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
-- purpose   Delete waiting messages, ready and delayed; leased ones stay with their workers.
-- promise   P15
-- locks     the part, shared; ready, delayed, dead rows, passing over locked ones; message rows
-- commits   where the caller has no transaction, after each 4000 messages; never the caller's
-- errors    RQ701 RQ711
-- differs   where others delete in one transaction, a large queue would hold a million row locks
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun nvarchar(100);
    declare @part_id int;
    declare @stage smallint = 0;
    declare @next smallint;
    declare @from bigint = 0;
    declare @after bigint;
    declare @step int;
    declare @removed int;
    declare @all_removed bigint = 0;

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

            exec rowq.InternalCheckRange N'max_messages', @max_messages, 1, 10000;
            while @stage < iif(@include_dead = 1, 22, 21)
            begin
                set @step = iif(
                    @max_messages - @all_removed < 4000, @max_messages - @all_removed, 4000
                );
                if @step = 0
                    break;
                set @next = @stage;
                set @after = @from;
                if @owns_transaction = 1
                    begin transaction;
                exec rowq.InternalRequireQueue @queue_name, @part_id output;
                exec rowq.InternalLockPartShared @part_id, @queue_name;
                if @owns_transaction = 0 and @is_saved = 0
                begin
                    save transaction rowq_call;
                    set @is_saved = 1;
                end;
                exec rowq.InternalPurgeStep
                    @part_id, @step, @next output, @after output, @removed output;
                if @owns_transaction = 1
                    commit transaction;
                set @stage = @next;
                set @from = @after;
                set @all_removed += @removed;
            end;
            if @part_id is null
                exec rowq.InternalRequireQueue @queue_name, @part_id output;
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

    select @all_removed as removed;
end
go
