set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.Reap
    @queue_name nvarchar(max),
    @batch_size int = 1000
as
begin
-- routine   Reap
-- version   1
-- purpose   Take unfinished messages back from claims whose lease ran out.
-- promise   P03 P09
-- locks     the part, shared; expired claim rows, passing over locked ones; message rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun nvarchar(100);
    declare @part_id int;
    declare @max_attempts int;
    declare @reaped int;
    declare @died int;

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

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalRequireQueue
                @queue_name, @part_id output, @max_attempts = @max_attempts output;
            exec rowq.InternalLockPartShared @part_id, @queue_name;

            if @owns_transaction = 0
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;
            exec rowq.InternalReap
                @part_id, @max_attempts, @batch_size, @reaped output, @died output;

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

    select @reaped as reaped, @died as died;
end
go
