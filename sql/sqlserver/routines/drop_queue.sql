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
-- purpose   Remove an empty queue, or with force a queue and everything in it, archive included.
-- promise   P02 P15
-- locks     the part for itself, all rows of the queue, waiting for a second at most
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ704 RQ705 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    set lock_timeout 1000;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun nvarchar(100);
    declare @part_id int;
    declare @found_part_id int;

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

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalRequireQueue @queue_name, @part_id output;

            if @owns_transaction = 0
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;
            -- An enqueue that has not committed must not be overlooked.
            select @found_part_id = p.part_id
            from rowq.part p with (rowlock, xlock, forceseek)
            where p.part_id = @part_id;
            if @found_part_id is null
                exec rowq.InternalRefuseQueue @queue_name;
            if coalesce(@force, 0) = 0
                exec rowq.InternalRefuseNotEmpty @part_id, @queue_name;
            exec rowq.InternalDeleteQueue @part_id;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;

            if error_number() = 1222
                throw 52705, N'RQ705 queue_busy: open transactions hold the queue; try again', 1;
            -- The victim of a deadlock, with nothing else to lose, begins again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left = 0
                throw;
        end catch;
    end;

    select cast(@queue_name as nvarchar(200)) as queue_name, N'dropped' as outcome;
end
go
