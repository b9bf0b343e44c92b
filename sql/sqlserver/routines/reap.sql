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
-- purpose   Return unfinished messages of claims whose lease has expired.
-- promise   P03 P09 P34 P37
-- locks     the queue, shared; expired claim rows, passing over locked ones; message rows, those of
--           cancelled messages tried only; rows of groups, tried only; new history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
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
    declare @max_attempts int;
    declare @history_days int;
    declare @reaped int;
    declare @died int;

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

            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalEnterQueue
                @queue_name, @queue_id output, @max_attempts = @max_attempts output,
                @history_days = @history_days output;

            -- Now the call writes. If the client gives up half-way, the engine takes back the whole
            -- transaction (xact_abort), so that nobody can commit one half of a call.
            set xact_abort on;
            exec rowq.InternalReap
                @queue_id, @max_attempts, @history_days, @batch_size, @owns_transaction,
                @reaped output, @died output;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has made
            -- it uncommittable if the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again. So does one that came to a group at the same moment as a producer.
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

    select @reaped as reaped, @died as died;
end
go
