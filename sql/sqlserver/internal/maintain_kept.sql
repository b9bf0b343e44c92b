set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintainKept
    @part_id int,
    @what nvarchar(7),
    @limit int,
    @until datetime2(6),
    @purged int output
as
begin
-- routine   InternalMaintainKept
-- purpose   Purge N'results' or N'history' in maintain, a queue's first @limit old rows, and till @until up to ten times as many; an error in it is printed, not raised.
-- promise   P13 P32 P37
-- locks     as InternalPurgeResults or InternalPurgeHistory
-- commits   where the caller has no transaction, after each 1000 rows; never the caller's
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    set lock_timeout 1000;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun int;
    declare @result_seconds float;
    declare @history_days int;
    declare @has_rows bit;
    declare @rest int;
    declare @step int;
    declare @done int;
    declare @text nvarchar(2048);
    set @purged = 0;

    -- With xact_abort on, a refusal would doom the caller's transaction.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            set @has_rows = 0;
            select @result_seconds = q.result_seconds, @history_days = q.history_days,
                   @has_rows = case
                       when @what = N'results' and q.result_seconds > 0 then 1
                       when @what = N'history' and q.history_days > 0 then 1
                       when @what = N'results' and exists (
                           select 1
                           from rowq.result r
                               with (
                                   index (result_finished_ix), rowlock, readpast, readcommittedlock,
                                   forceseek
                               )
                           where r.part_id = @part_id
                       ) then 1
                       when @what = N'history' and exists (
                           select 1
                           from rowq.history h
                               with (
                                   index (history_pk), rowlock, readpast, readcommittedlock,
                                   forceseek
                               )
                           where h.part_id = @part_id
                       ) then 1
                       else 0
                   end
            from rowq.queue q with (forceseek)
            where q.part_id = @part_id;
            if @has_rows = 0
                break;
            if @owns_transaction = 0
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;

            while @purged < @limit or @purged < 10 * @limit and sysutcdatetime() < @until
            begin
                set @rest = iif(@purged < @limit, @limit, 10 * @limit) - @purged;
                set @step = iif(@rest < 1000, @rest, 1000);
                if @owns_transaction = 1
                    begin transaction;
                if @what = N'results'
                    exec rowq.InternalPurgeResults
                        @part_id, @result_seconds, @step, @owns_transaction, @done output;
                else
                    exec rowq.InternalPurgeHistory
                        @part_id, @history_days, @step, @owns_transaction, @done output;
                if @owns_transaction = 1
                    commit transaction;
                set @purged += @done;
                if @done < @step
                    break;
            end;
            break;
        end try
        begin catch
            -- Take back the work of this call only: its own transaction, or the caller's down to
            -- the savepoint. There is no way back to a savepoint in a transaction that is doomed.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;
            -- The steps of an own transaction are committed, those of a guest are all taken back.
            if @owns_transaction = 0
                set @purged = 0;

            -- If the caller's transaction is lost, the caller must get the error.
            if @owns_transaction = 0 and xact_state() <> 1
                throw;
            -- A deadlock victim (1205) that has a transaction of its own has lost nothing else, so
            -- it starts again.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            -- An error is only printed, because housekeeping must go on.
            if @tries_left = 0
            begin
                set @text = left(concat(N'rowq ', @what, N': ', error_message()), 2000);
                print @text;
            end;
        end catch;
    end;
end
go
