-- Archive: finished messages, by day.
--
-- A finished message of a queue with archive_days waits in finished until maintain moves it to
-- archive with its body. Messages locked by another transaction are skipped. A day is a partition
-- if the server has them: maintain adds days early and drops those that no queue needs. A
-- queue's old rows in other days are deleted by key. An error never fails maintain; the next call
-- retries.
--
-- A partition is truncated and merged. One partition takes everything until maintain splits off a
-- day.
--
--   maintain_queue -> maintain_archive -> drop_days, open_days, archive, purge_archive
--
-- Writes archived, finished, lane, message. Only reads queue_lock, queue, successor.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalMaintainArchive
    @queue_id int,
    @limit int,
    @archived int output,
    @purged int output,
    @partitions_dropped int output
as
begin
-- purpose   Archive, purge and drop days in maintain; print an error instead of raising it.
-- locks     as archive and purge_archive
-- commits   if the caller has no transaction, after every 1000 messages; never the caller's
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    set lock_timeout 1000;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @is_saved bit = 0;
    declare @tries_left int = 5;
    declare @begun int, @archive_days int, @is_open bit, @before datetime2(6), @step int, @done int,
        @text nvarchar(2048);
    set @archived = 0;
    set @purged = 0;
    set @partitions_dropped = 0;

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

            set @archive_days = 0;
            set @is_open = 0;
            select @archive_days = q.archive_days
            from rowq.queue q with (forceseek)
            where q.queue_id = @queue_id;
            -- Checking the archive itself would cost one seek per day kept.
            select @is_open = l.is_open
            from rowq.lane l with (readuncommitted, forceseek)
            where l.queue_id = @queue_id
              and l.lane = -3 /* finished */;
            if @archive_days = 0
                and @is_open = 0
                and not exists (
                    select 1
                    from rowq.finished f with (readuncommitted)
                    where f.queue_id = @queue_id
                )
                break;
            -- The catalog is slow to read, so check the days once a minute, in the session that
            -- locks this row.
            if @owns_transaction = 1
            begin
                update l
                set check_after = dateadd(minute, 1, sysutcdatetime())
                from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where l.queue_id = @queue_id
                  and l.lane = -21 /* election */
                  and l.check_after <= sysutcdatetime();
                if @@rowcount = 1
                begin
                    exec rowq.InternalDropDays @partitions_dropped output;
                    exec rowq.InternalOpenDays @queue_id;
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
                exec rowq.InternalArchive @queue_id, @step, @done output;
                if @owns_transaction = 1
                    commit transaction;
                set @archived += @done;
                if @done < @step
                    break;
            end;
            -- Purge whole days: dropping a partition costs less than deleting its rows. A queue
            -- without archive_days is purged up to now.
            set @before = iif(
                @archive_days > 0,
                cast(cast(dateadd(day, -@archive_days, sysutcdatetime()) as date) as datetime2(6)),
                sysutcdatetime()
            );
            while @purged < @limit
            begin
                set @step = iif(@limit - @purged < 1000, @limit - @purged, 1000);
                exec rowq.InternalPurgeArchive @queue_id, @before, @step, @done output;
                set @purged += @done;
                if @done < @step
                    break;
            end;
            -- The purged days may be empty now: check them in the next call.
            if @purged > 0 and @owns_transaction = 1
                update l
                set check_after = '19700101'
                from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where l.queue_id = @queue_id
                  and l.lane = -21 /* election */;
            if @archive_days = 0 and @purged < @limit
                update l
                set is_open = 0
                from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                where l.queue_id = @queue_id
                  and l.lane = -3 /* finished */
                  and l.is_open = 1
                  and not exists (
                      select 1
                      from rowq.archived a with (readcommittedlock)
                      where a.queue_id = @queue_id
                  )
                option (loop join, maxdop 1, keepfixed plan);
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
                set @archived = 0;
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
            -- An error in the archive, such as a full disk, is only logged: promote and reap
            -- continue.
            if @tries_left = 0
            begin
                set @text = left(concat(N'rowq archive: ', error_message()), 2000);
                print @text;
            end;
        end catch;
    end;
end
go

create or alter procedure rowq.InternalDropDays
    @partitions_dropped int output
with execute as owner
as
begin
-- purpose   Drop the partitions of the archive that no queue needs.
-- locks     the archive, briefly, waits up to 1 s
-- commits   never; call it outside transactions
-- differs   PostgreSQL drops them in the caller's transaction
    set nocount on;
    set xact_abort off;
    set lock_timeout 1000;
    declare @keep_from datetime2(6), @first datetime2(6), @second datetime2(6);
    set @partitions_dropped = 0;

    -- This reads all rows. Without row versions another session may have locked one: leave it to
    -- the next call instead of waiting a second per queue.
    begin try
        select @keep_from = cast(dateadd(day, -max(q.archive_days), sysutcdatetime()) as date)
        from rowq.queue q with (nowait);
    end try
    begin catch
        if error_number() <> 1222
            throw;
        return;
    end catch;

    while 1 = 1
    begin
        set @first = null;
        set @second = null;
        select @first = cast(v.value as datetime2(6))
        from sys.partition_functions f
        inner join sys.partition_range_values v on v.function_id = f.function_id
        where f.name = N'rowq_day'
          and v.boundary_id = 1;
        select @second = cast(v.value as datetime2(6))
        from sys.partition_functions f
        inner join sys.partition_range_values v on v.function_id = f.function_id
        where f.name = N'rowq_day'
          and v.boundary_id = 2;
        if @second is null or @second > @keep_from
            break;

        -- Partitions 1 and 2, on both sides of the first bound, are expired. Empty them first, so
        -- that the merge moves no row. If another session reads the archive, leave it to the next
        -- call.
        begin try
            truncate table rowq.archived with (partitions (1 to 2));
            alter partition function rowq_day() merge range (@first);
        end try
        begin catch
            break;
        end catch;
        -- A gap between two days is a partition but not a day, so it is not counted.
        if @second = dateadd(day, 1, @first)
            set @partitions_dropped += 1;
    end;
end
go

create or alter procedure rowq.InternalOpenDays
    @queue_id int
with execute as owner
as
begin
-- purpose   Split off the next three days, and each earlier day that has finished messages.
-- locks     the archive, briefly, waits up to 1 s
-- commits   never; call it outside transactions
-- differs   PostgreSQL adds the partition in the transaction that needs it
    set nocount on;
    set xact_abort off;
    set lock_timeout 1000;
    declare @today datetime2(6) = cast(sysutcdatetime() as date);
    declare @day datetime2(6), @floor bigint, @since datetime2(6), @first datetime2(6);
    declare @days table (day datetime2(6) not null primary key);

    insert into @days (day)
    values (@today), (dateadd(day, 1, @today)), (dateadd(day, 2, @today));

    -- Messages that finished before today are here if no session has archived for a while. Each
    -- round finds the next such day.
    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -3 /* finished */;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    while 1 = 1
    begin
        set @first = null;
        select top (1) @first = f.finished_at
        from rowq.finished f with (readuncommitted, forceseek)
        where f.queue_id = @queue_id
          and f.finished_at >= @since
        order by f.finished_at, f.message_id
        option (maxdop 1, keepfixed plan);
        if @first is null or @first >= @today
            break;

        -- Open the day and the next one: only a partition between two bounds can be dropped.
        set @day = cast(@first as date);
        set @since = dateadd(day, 1, @day);
        insert into @days (day)
        select v.day
        from (values (@day), (@since)) v (day)
        where not exists (select 1 from @days d where d.day = v.day);
    end;

    while 1 = 1
    begin
        set @day = null;
        select top (1) @day = d.day from @days d order by d.day;
        if @day is null
            break;
        delete from @days where day = @day;

        -- The statement fails if another session reads the archive or has made the same change: the
        -- next call retries.
        begin try
            if not exists (
                select 1
                from sys.partition_functions f
                inner join sys.partition_range_values v on v.function_id = f.function_id
                where f.name = N'rowq_day'
                  and cast(v.value as datetime2(6)) = @day
            )
            begin
                alter partition scheme rowq_day next used [PRIMARY];
                alter partition function rowq_day() split range (@day);
            end;
        end try
        begin catch
            return;
        end catch;
    end;
end
go

create or alter procedure rowq.InternalArchive
    @queue_id int,
    @limit int,
    @archived int output
as
begin
-- purpose   Move up to p_limit finished messages to the archive, oldest first.
-- locks     finished rows, skipping locked ones; lane -3; message rows, tried; new archive rows; as
--           InternalResumeSuccessors
    set nocount on;
    declare @floor bigint, @is_open bit, @since datetime2(6);
    declare @awaited_id bigint = 0;
    declare @moved table (
        message_id  bigint not null primary key,
        finished_at datetime2(6) not null,
        lane        smallint not null,
        attempt     smallint not null,
        state       nvarchar(20) collate Latin1_General_100_BIN2 not null
    );
    declare @held table (
        message_id bigint not null primary key,
        is_awaited bit not null
    );

    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -3 /* finished */;
    exec rowq.InternalFromMicroseconds @floor, @since output;

    -- A call in the caller's transaction that is interrupted here leaves finished rows. The next
    -- call continues, and ignore_dup_key skips rows already in the archive.
    insert into @moved (message_id, finished_at, lane, attempt, state)
    select top (@limit) f.message_id, f.finished_at, f.lane, f.attempt, f.state
    from rowq.finished f with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where f.queue_id = @queue_id
      and f.finished_at >= @since
    order by f.finished_at, f.message_id
    option (maxdop 1, keepfixed plan);
    set @archived = @@rowcount;
    if @archived = 0
        return;

    -- Skip a message while a producer adds a successor of it.
    insert into @held (message_id, is_awaited)
    select m.message_id, iif(s.predecessor_id is null, 0, 1)
    from @moved j
    inner join rowq.message m
        with (
            rowlock, xlock, readpast, readcommittedlock,
            forceseek (message_pk (queue_id, message_id))
        )
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
    outer apply (
        select top (1) x.predecessor_id
        from rowq.successor x
            with (rowlock, readcommittedlock, forceseek (successor_pk (queue_id, predecessor_id)))
        where x.queue_id = @queue_id
          and x.predecessor_id = m.message_id
    ) s
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @@rowcount < @archived
    begin
        delete j
        from @moved j
        inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
            on m.queue_id = @queue_id
           and m.message_id = j.message_id
        where not exists (select 1 from @held h where h.message_id = j.message_id)
        option (loop join, force order, maxdop 1, keepfixed plan);
        select @archived = count(*) from @moved;
        if @archived = 0
            return;
    end;

    -- The lane is open while the queue may have archived messages. This lock keeps maintain from
    -- closing it until this transaction ends.
    select @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -3 /* finished */;
    -- Two sessions that hold the row shared could not open the lane, so lock it exclusively at
    -- once.
    if @is_open = 1
        select @is_open = l.is_open
        from rowq.lane l with (rowlock, repeatableread, forceseek)
        where l.queue_id = @queue_id
          and l.lane = -3 /* finished */;
    if @is_open = 0
        update rowq.lane with (rowlock)
        set is_open = 1
        where queue_id = @queue_id
          and lane = -3 /* finished */;

    insert into rowq.archived with (rowlock) (
        queue_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
        dedup_key, headers, body, body_binary, group_key, producer_name
    )
    select @queue_id, j.finished_at, j.message_id, j.lane, j.attempt, m.enqueued_at, j.state,
           m.message_type, m.dedup_key, m.headers, m.body, m.body_binary, m.group_key,
           m.producer_name
    from @moved j
    inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete m
    from @moved j
    inner join rowq.message m with (rowlock, forceseek)
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete f
    from @moved j
    inner join rowq.finished f with (rowlock, forceseek)
        on f.queue_id = @queue_id
       and f.finished_at = j.finished_at
       and f.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- When the message ended, an uncommitted successor was not visible.
    while 1 = 1
    begin
        select top (1) @awaited_id = h.message_id
        from @held h
        where h.message_id > @awaited_id
          and h.is_awaited = 1
        order by h.message_id;
        if @@rowcount = 0
            break;
        exec rowq.InternalResumeSuccessors @queue_id, @awaited_id, @may_join = 0;
    end;
end
go

create or alter procedure rowq.InternalPurgeArchive
    @queue_id int,
    @before datetime2(6),
    @limit int,
    @purged int output
as
begin
-- purpose   Delete a queue's archived messages that finished before @before.
-- locks     archive rows, skipping locked ones
    set nocount on;
    declare @old table (
        finished_at datetime2(6) not null,
        message_id  bigint not null,
        primary key (finished_at, message_id)
    );

    -- Read rows with short locks: if partitions are not read in order, a sort reads all old rows.
    insert into @old (finished_at, message_id)
    select top (@limit) a.finished_at, a.message_id
    from rowq.archived a
        with (index (archived_pk), rowlock, readpast, readcommittedlock, forceseek)
    where a.queue_id = @queue_id
      and a.finished_at < @before
    order by a.finished_at, a.message_id
    option (maxdop 1, keepfixed plan);
    -- Lock exclusively at once: an update lock is granted beside a reader's lasting shared lock,
    -- and the delete would then wait.
    delete a
    from @old o
    inner join rowq.archived a
        with (index (archived_pk), rowlock, xlock, readpast, readcommittedlock, forceseek)
        on a.queue_id = @queue_id
       and a.finished_at = o.finished_at
       and a.message_id = o.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    set @purged = @@rowcount;
end
go
