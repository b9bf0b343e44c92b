set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRunSchedules
    @part_id int
as
begin
-- routine   InternalRunSchedules
-- purpose   Run the schedules of a queue that are due and that no other session is running.
-- promise   P30 P31
-- locks     the part, shared; due schedule rows, tried only; as InternalRunDue
-- commits   each schedule by itself where the caller has no transaction; never the caller's
-- errors    RQ701
-- differs   in the caller's transaction schedules with a group, or without overlap, are left to
--           others
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- The call has a transaction of its own, unless one is open or implicit_transactions (bit 2 of
    -- the options) begins one for the caller.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @now datetime2(6) = sysutcdatetime();
    declare @begun int;
    declare @queue_name nvarchar(200);
    declare @schedule_key varbinary(402) = 0x;
    declare @next_key varbinary(402);
    declare @is_due bit;
    declare @is_late bit = 0;
    declare @error nvarchar(4000);

    while 1 = 1
    begin
        -- With xact_abort on, a refusal would doom the caller's transaction.
        if @owns_transaction = 0
            set xact_abort off;
        set @error = null;
        set @next_key = null;
        begin try
            -- Under implicit_transactions this read begins the caller's transaction. Read before we
            -- change the isolation level, so that the transaction has the level the caller chose.
            -- @begun only keeps the value out of the caller's results.
            if @owns_transaction = 0
                select @begun = p.part_id from rowq.part p where p.part_id = 0;
            set transaction isolation level read committed;

            -- Look first, because the lock below would stay on rows that are not due, too. A guest
            -- must not wait for others, as it holds the part until its caller's transaction ends,
            -- and a call of its own waits for a producer once.
            select top (1) @next_key = s.schedule_key
            from rowq.schedule s with (rowlock, readpast, readcommittedlock, forceseek)
            where s.part_id = @part_id
              and s.schedule_key > @schedule_key
              and s.next_run_at <= @now
              and (
                  @owns_transaction = 1 and @is_late = 0
                  or s.overlap = 1 and s.group_key is null
              )
            order by s.schedule_key
            option (maxdop 1, keepfixed plan);
            if @next_key is null
                break;
            set @schedule_key = @next_key;

            if @owns_transaction = 1
                begin transaction;
            set @queue_name = N'';
            select @queue_name = q.queue_name
            from rowq.queue q with (forceseek)
            where q.part_id = @part_id;
            exec rowq.InternalLockPartShared @part_id, @queue_name;
            set @is_due = 0;
            select @is_due = 1
            from rowq.schedule s with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where s.part_id = @part_id
              and s.schedule_key = @schedule_key
              and s.next_run_at <= @now
              and (
                  @owns_transaction = 1 and @is_late = 0
                  or s.overlap = 1 and s.group_key is null
              )
            option (maxdop 1, keepfixed plan);
            if @is_due = 1
            begin
                exec rowq.InternalCheckTick @part_id, @schedule_key;

                -- Now the call writes. If the client gives up half-way, the engine takes back the
                -- whole transaction (xact_abort), so that nobody can commit one half of a call.
                set xact_abort on;
                exec rowq.InternalRunDue @part_id, @schedule_key, @owns_transaction;
            end;

            if @owns_transaction = 1
                commit transaction;
        end try
        begin catch
            -- The transaction of a caller is the caller's to end, and the engine has doomed it if
            -- the call had begun to write.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            if @next_key is null
                or error_number() = 52701
                or @owns_transaction = 0 and xact_state() <> 1
                throw;

            if error_number() = 1222
                set @is_late = 1;
            -- What comes of locks (1205, 1222) or of the server's state is tried again by the next
            -- call. What would be refused again is noted, and its tick is given up.
            if error_number() <> 1222 and error_severity() between 14 and 16
                set @error = error_message();
        end catch;
        if @error is not null
            exec rowq.InternalGiveUpTick @part_id, @schedule_key, @error;
    end;
end
go
