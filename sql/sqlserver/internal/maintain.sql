-- Maintain: floors, expiry, promote, reap, schedules, archive, purges.
--
-- Any session may call maintain at any time. For each queue one caller is elected by a row lock
-- that is tried, never waited for: many callers cost no more than one. An idle queue costs about 30
-- small statements. Delivery comes first; purges get the rest of 100 ms. If a queue fails, the
-- others are maintained, further errors are printed, and the call raises the first one at its end.
--
--   maintain -> maintain_queue
--   maintain_queue -> maintain_delivery, maintain_retention
--
-- Writes lane, queue. Only reads expiry, history, queue_lock, deferred, result, schedule, started.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalMaintain
    @queue_name nvarchar(max),
    @batch_size int,
    @is_quiet bit
as
begin
-- purpose   Maintain one queue or all, and return a row for each unless @is_quiet is 1.
-- locks     a row of lane per queue, skipped if locked; as promote, reap, InternalRunSchedules,
--           archive
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   only here: the job of SQL Server Agent wants no rows
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set xact_abort off;
    declare @begun int, @state int;
    declare @is_named bit = iif(@queue_name is null, 0, 1);
    declare @turn int = 0;
    declare @queue_id int, @elected bit, @promoted int, @reaped int, @died int, @expired int,
        @archived int, @purged int, @dropped int, @text nvarchar(2048);
    -- More than one batch of results and history runs only until then, for all queues.
    declare @until datetime2(6) = dateadd(millisecond, 100, sysutcdatetime());
    declare @queues table (
        turn     int not null primary key,
        queue_id int not null
    );
    declare @rows table (
        queue_id           int not null primary key,
        elected            bit not null,
        promoted           int not null,
        reaped             int not null,
        died               int not null,
        archived           int not null,
        purged             int not null,
        partitions_dropped int not null,
        expired            int not null
    );

    begin try
        exec rowq.InternalCheckBatchSize @batch_size;
        -- With implicit_transactions, begin the caller's transaction at its isolation level.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        set @state = xact_state();
        if @is_named = 1
        begin
            exec rowq.InternalRequireQueue @queue_name, @queue_id output;
            insert into @queues (turn, queue_id) values (1, @queue_id);
        end;
        else
        begin
            -- The order is random, so that no queue is always last. queue_lock rows are locked only
            -- by drop_queue; queue rows also by alter_queue and pause_queue.
            insert into @queues (turn, queue_id)
            select r.turn, r.queue_id
            from (
                select row_number() over (order by newid()) as turn, p.queue_id
                from rowq.queue_lock p with (rowlock, readpast, readcommittedlock)
                where p.queue_id > 0
            ) r
            where r.turn <= 1000;
            -- A locked queue must not stop the others. In the caller's transaction a lock timeout
            -- would make it uncommittable, so there wait as the caller does.
            if @state = 0
                set lock_timeout 1000;
        end;

        while 1 = 1
        begin
            set @turn += 1;
            select @queue_id = p.queue_id from @queues p where p.turn = @turn;
            if @@rowcount = 0
                break;
            exec rowq.InternalMaintainQueue
                @queue_id, @is_named, @batch_size, @until, @elected output, @promoted output,
                @reaped output, @died output, @expired output, @archived output, @purged output,
                @dropped output;
            if @elected is not null
                insert into @rows (
                    queue_id, elected, promoted, reaped, died, archived, purged, partitions_dropped,
                    expired
                )
                values (
                    @queue_id, @elected, @promoted, @reaped, @died, @archived, @purged, @dropped,
                    @expired
                );
        end;
    end try
    begin catch
        -- One queue failed. Maintain the others unless the caller's transaction is uncommittable,
        -- print their errors, then raise the first error.
        while xact_state() = @state
        begin
            set @turn += 1;
            select @queue_id = p.queue_id from @queues p where p.turn = @turn;
            if @@rowcount = 0
                break;
            begin try
                exec rowq.InternalMaintainQueue
                    @queue_id, @is_named, @batch_size, @until, @elected output, @promoted output,
                    @reaped output, @died output, @expired output, @archived output,
                    @purged output, @dropped output;
            end try
            begin catch
                set @text = left(concat(N'rowq maintain: ', error_message()), 2000);
                print @text;
            end catch;
        end;
        throw;
    end catch;

    if @is_quiet = 1
        return;
    select q.queue_name, j.elected, j.promoted, j.reaped, j.died, j.archived, j.purged,
           j.partitions_dropped, j.expired
    from @rows j
    inner join rowq.queue q with (forceseek) on q.queue_id = j.queue_id
    order by j.queue_id
    option (loop join, maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalMaintainQueue
    @queue_id int,
    @is_named bit,
    @batch_size int,
    @until datetime2(6),
    @elected bit output,
    @promoted int output,
    @reaped int output,
    @died int output,
    @expired int output,
    @archived int output,
    @purged int output,
    @dropped int output
as
begin
-- purpose   Maintain one queue in the session that is elected for it.
-- locks     as the helpers it calls
-- commits   its own transactions if the caller has none; never the caller's
-- errors    RQ701
--
-- @elected is null if the queue is gone, which is an error only if @is_named is 1.
    set nocount on;
    set xact_abort off;
    declare @has_due bit, @more int;
    -- Results use half of the time for more than one batch, history the rest.
    declare @until_results datetime2(6) = dateadd(millisecond, -50, @until);
    set @archived = 0;
    set @purged = 0;
    set @dropped = 0;

    begin try
        exec rowq.InternalMaintainDelivery
            @queue_id, @batch_size, @elected output, @promoted output, @reaped output,
            @died output, @expired output, @has_due output;
        if @elected = 1 and @has_due = 1
            exec rowq.InternalRunSchedules @queue_id;
        if @elected = 1
        begin
            exec rowq.InternalMaintainArchive
                @queue_id, @batch_size, @archived output, @purged output, @dropped output;
            exec rowq.InternalMaintainRetention
                @queue_id, N'results', @batch_size, @until_results, @more output;
            set @purged += @more;
            exec rowq.InternalMaintainRetention
                @queue_id, N'history', @batch_size, @until, @more output;
            set @purged += @more;
        end;
    end try
    begin catch
        if @is_named = 1 or error_number() <> 52701
            throw;
        set @elected = null;
    end catch;
end
go

create or alter procedure rowq.InternalMaintainDelivery
    @queue_id int,
    @limit int,
    @elected bit output,
    @promoted int output,
    @reaped int output,
    @died int output,
    @expired int output,
    @has_due bit output
as
begin
-- purpose   Run the part of maintain that delivery needs, in the elected session.
-- locks     the queue, shared; rows of lane, skipped if locked; as the helpers it calls; the queue
--           row, tried
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701
--
-- Moves floors, then runs deferred work, reap, expire, promote and the purge of started. @has_due
-- is 1 if a schedule is due.
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5;
    declare @now datetime2(6) = sysutcdatetime();
    declare @begun int, @queue_name nvarchar(200), @max_attempts int, @archive_days int,
        @turn smallint, @has_deferred bit, @has_rows bit, @has_started bit, @has_expiry bit,
        @history_days int, @rate_seconds float;
    declare @most_started int = 10 * @limit;
    declare @solved int;

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
            set @max_attempts = null;
            set @has_due = 0;
            select @max_attempts = q.max_attempts, @queue_name = q.queue_name,
                   @archive_days = q.archive_days,
                   @has_deferred = q.has_deferred,
                   @has_rows = case
                       when q.has_deferred = 1 then 1
                       when exists (
                           select 1
                           from rowq.deferred r
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where r.queue_id = @queue_id
                       ) then 1
                       else 0
                   end,
                   @has_started = case
                       when q.rate_limit > 0 then 1
                       when exists (
                           select 1
                           from rowq.started s
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where s.queue_id = @queue_id
                       ) then 1
                       else 0
                   end,
                   @rate_seconds = iif(q.rate_limit > 0, q.rate_seconds, 0),
                   @history_days = q.history_days,
                   @has_expiry = case
                       when exists (
                           select 1
                           from rowq.lane l with (readuncommitted, forceseek)
                           where l.queue_id = @queue_id
                             and l.lane = -6 /* expiry */
                             and l.is_open = 1
                       ) then 1
                       when exists (
                           select 1
                           from rowq.expiry e
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where e.queue_id = @queue_id
                       ) then 1
                       else 0
                   end,
                   @has_due = case
                       when exists (
                           select 1
                           from rowq.schedule s
                               with (rowlock, readpast, readcommittedlock, forceseek)
                           where s.queue_id = @queue_id
                             and s.next_run_at <= @now
                       ) then 1
                       else 0
                   end
            from rowq.queue q with (forceseek)
            where q.queue_id = @queue_id;
            set @queue_name = coalesce(@queue_name, N'');
            exec rowq.InternalLockQueueShared @queue_id, @queue_name;
            set @promoted = 0;
            set @reaped = 0;
            set @died = 0;
            set @expired = 0;
            -- This row elects the session that runs maintain. A named lock would not do: every user
            -- of the database could take it.
            set @turn = null;
            select @turn = l.lane
            from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where l.queue_id = @queue_id
              and l.lane = -21 /* election */;
            set @elected = iif(@turn is null, 0, 1);
            if @elected = 0
            begin
                if @owns_transaction = 1
                    commit transaction;
                break;
            end;

            -- Writes start here: if the client disconnects, xact_abort rolls back everything.
            set xact_abort on;
            -- From now on maintain moves the floor of expiry. Commit this before the first row is
            -- deleted: sessions that move messages read this or the row.
            if @has_expiry = 1 and @owns_transaction = 1
                update l
                set is_open = 1
                from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where l.queue_id = @queue_id
                  and l.lane = -6 /* expiry */
                  and l.is_open = 0;
            -- Move the floors first, so that the steps below find late rows.
            exec rowq.InternalRescanFloors @queue_id;
            -- While a floor moves, calls inside callers' transactions wait for lane -22. So commit
            -- here and elect again; another session may win now and do the rest.
            if @owns_transaction = 1
                commit transaction;
            if @owns_transaction = 1
                begin transaction;
            exec rowq.InternalLockQueueShared @queue_id, @queue_name;
            set @turn = null;
            select @turn = l.lane
            from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where l.queue_id = @queue_id
              and l.lane = -21 /* election */;
            if @turn is not null
            begin
                if @has_rows = 1
                    exec rowq.InternalRunDeferred
                        @queue_id, @limit, @owns_transaction, @solved output;
                exec rowq.InternalReap
                    @queue_id, @max_attempts, @history_days, @limit, @owns_transaction,
                    @reaped output, @died output;
                -- The caller's transaction might hold expired messages for long.
                if @has_expiry = 1
                    and @owns_transaction = 1
                    and exists (
                        select 1
                        from rowq.lane l with (readuncommitted, forceseek)
                        where l.queue_id = @queue_id
                          and l.lane = -6 /* expiry */
                          and l.is_open = 1
                    )
                    exec rowq.InternalExpire @queue_id, @archive_days, @limit, @expired output;
                -- Promote last: for a message that waits in its group it holds a slot by an update
                -- lock, which the steps above would have to convert.
                exec rowq.InternalPromote @queue_id, @limit, @owns_transaction, @promoted output;
                if @has_started = 1
                    exec rowq.InternalPurgeStarted
                        @queue_id, @rate_seconds, @most_started, @owns_transaction;
                if @has_rows > @has_deferred and @owns_transaction = 1
                begin
                    -- From now on an empty dequeue runs deferred work, and maintain moves the floor
                    -- of deferred.
                    update l
                    set is_open = 1
                    from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                    where l.queue_id = @queue_id
                      and l.lane = -4 /* deferred */;
                    update q
                    set has_deferred = 1
                    from rowq.queue q
                        with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                    where q.queue_id = @queue_id;
                end;
            end;

            if @owns_transaction = 1
                commit transaction;
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
end
go

create or alter procedure rowq.InternalMaintainRetention
    @queue_id int,
    @what nvarchar(7),
    @limit int,
    @until datetime2(6),
    @purged int output
as
begin
-- purpose   Purge old results or history; print an error instead of raising it.
-- locks     as InternalPurgeResults or InternalPurgeHistory
-- commits   if the caller has no transaction, after every 1000 rows; never the caller's
--
-- @what is N'results' or N'history'. Up to @limit rows; until @until, up to ten times as many.
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    set lock_timeout 1000;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun int, @result_seconds float, @history_days int, @has_rows bit, @remaining int,
        @step int, @done int, @text nvarchar(2048);
    set @purged = 0;

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
                           where r.queue_id = @queue_id
                       ) then 1
                       when @what = N'history' and exists (
                           select 1
                           from rowq.history h
                               with (
                                   index (history_pk), rowlock, readpast, readcommittedlock,
                                   forceseek
                               )
                           where h.queue_id = @queue_id
                       ) then 1
                       else 0
                   end
            from rowq.queue q with (forceseek)
            where q.queue_id = @queue_id;
            if @has_rows = 0
                break;
            if @owns_transaction = 0
            begin
                save transaction rowq_call;
                set @is_saved = 1;
            end;

            while @purged < @limit or @purged < 10 * @limit and sysutcdatetime() < @until
            begin
                set @remaining = iif(@purged < @limit, @limit, 10 * @limit) - @purged;
                set @step = iif(@remaining < 1000, @remaining, 1000);
                if @owns_transaction = 1
                    begin transaction;
                if @what = N'results'
                    exec rowq.InternalPurgeResults
                        @queue_id, @result_seconds, @step, @owns_transaction, @done output;
                else
                    exec rowq.InternalPurgeHistory
                        @queue_id, @history_days, @step, @owns_transaction, @done output;
                if @owns_transaction = 1
                    commit transaction;
                set @purged += @done;
                if @done < @step
                    break;
            end;
            break;
        end try
        begin catch
            -- Roll back only this call: its own transaction, or the caller's to the savepoint,
            -- unless it is uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            else if @is_saved = 1 and xact_state() = 1
                rollback transaction rowq_call;
            -- In our own transaction earlier steps are committed; in the caller's all are rolled
            -- back.
            if @owns_transaction = 0
                set @purged = 0;

            -- If the caller's transaction is uncommittable, raise the error.
            if @owns_transaction = 0 and xact_state() <> 1
                throw;
            -- Retry a deadlock (1205) in our own transaction.
            set @tries_left = iif(
                @owns_transaction = 1 and error_number() = 1205, @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            -- An error is only printed: maintain must continue.
            if @tries_left = 0
            begin
                set @text = left(concat(N'rowq ', @what, N': ', error_message()), 2000);
                print @text;
            end;
        end catch;
    end;
end
go
