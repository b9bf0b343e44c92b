set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMaintainArchive
    @part_id int,
    @limit int,
    @archived int output,
    @purged int output,
    @partitions_dropped int output
as
begin
-- routine   InternalMaintainArchive
-- purpose   Run the archive part of maintain: drop partitions, move, purge whole days; an error in it is printed, not raised.
-- promise   P09 P19
-- locks     as archive and purge_archive
-- commits   where the caller has no transaction, after each 1000 messages; never the caller's
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
    declare @archive_days int;
    declare @is_open bit;
    declare @before datetime2(6);
    declare @step int;
    declare @done int;
    declare @text nvarchar(2048);
    set @archived = 0;
    set @purged = 0;
    set @partitions_dropped = 0;

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

            set @archive_days = 0;
            set @is_open = 0;
            select @archive_days = q.archive_days
            from rowq.queue q with (forceseek)
            where q.part_id = @part_id;
            -- To look into the archive itself would cost a seek a day that any queue keeps.
            select @is_open = l.is_open
            from rowq.lane l with (readuncommitted, forceseek)
            where l.part_id = @part_id
              and l.lane = -3 /* finished */;
            if @archive_days = 0
                and @is_open = 0
                and not exists (
                    select 1
                    from rowq.finished f with (readuncommitted)
                    where f.part_id = @part_id
                )
                break;
            -- The days are in the catalog, which takes long to read: look at them once a minute.
            -- Whoever holds the row is elected, too, and looks at them.
            if @owns_transaction = 1
            begin
                update l
                set check_after = dateadd(minute, 1, sysutcdatetime())
                from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where l.part_id = @part_id
                  and l.lane = -21 /* election */
                  and l.check_after <= sysutcdatetime();
                if @@rowcount = 1
                begin
                    exec rowq.InternalDropDays @partitions_dropped output;
                    exec rowq.InternalOpenDays @part_id;
                end;
            end;
            else
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;

            while @archived < @limit
            begin
                set @step = iif(@limit - @archived < 1000, @limit - @archived, 1000);
                if @owns_transaction = 1
                    begin transaction;
                exec rowq.InternalArchive @part_id, @step, @done output;
                if @owns_transaction = 1
                    commit transaction;
                set @archived += @done;
                if @done < @step
                    break;
            end;
            -- Purge whole days, because dropping a partition costs less than deleting its rows. A
            -- queue that keeps no archive any more is purged up to now.
            set @before = iif(
                @archive_days > 0,
                cast(cast(dateadd(day, -@archive_days, sysutcdatetime()) as date) as datetime2(6)),
                sysutcdatetime()
            );
            while @purged < @limit
            begin
                set @step = iif(@limit - @purged < 1000, @limit - @purged, 1000);
                exec rowq.InternalPurgeArchive @part_id, @before, @step, @done output;
                set @purged += @done;
                if @done < @step
                    break;
            end;
            -- The days of what was purged may be gone by now: look at them in the next call.
            if @purged > 0 and @owns_transaction = 1
                update l
                set check_after = '19700101'
                from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where l.part_id = @part_id
                  and l.lane = -21 /* election */;
            if @archive_days = 0 and @purged < @limit
                update l
                set is_open = 0
                from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where l.part_id = @part_id
                  and l.lane = -3 /* finished */
                  and l.is_open = 1
                  and not exists (
                      select 1
                      from rowq.archived a with (readcommittedlock)
                      where a.part_id = @part_id
                  )
                option (loop join, maxdop 1, keepfixed plan);
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
                set @archived = 0;
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
            -- An error in the archive, such as a full disk, is only printed, because promoting and
            -- reaping must go on.
            if @tries_left = 0
            begin
                set @text = left(concat(N'rowq archive: ', error_message()), 2000);
                print @text;
            end;
        end catch;
    end;
end
go
