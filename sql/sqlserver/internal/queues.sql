-- Queues: settings, locks against drop_queue, and deletion.
--
-- Every call reads its queue's settings by name, once, and raises RQ701 if the queue does not
-- exist. A call that adds or moves messages also prevents drop_queue until its transaction ends.
-- drop_queue takes the opposite lock and fails with RQ705 after about a second, so calls never wait
-- long behind it.
--
-- The lock is the queue's row in queue_lock: shared by producers, exclusive for drop_queue.
--
--   create_queue -> add_queue_rows
--   alter_queue, bind_topic, unbind_topic, ... -> enter_queue -> refuse_queue
--   pause_queue, resume_queue, dequeue -> refuse_queue
--   drop_queue -> delete_queue, refuse_not_empty
--   drop_queue -> lock_queue_exclusive -> refuse_queue
--   drop_queue, pause_queue, resume_queue, ... -> require_queue -> refuse_queue
--   purge_queue -> purge_step
--   enqueue_batch, run_schedules, maintain_delivery -> lock_queue_shared -> refuse_queue
--
-- Writes archived, blocked, claim, dead, dedup, delayed, expiry, finished, limit_lock,
-- group_waiting, history, lane, leased, message, group_slot, queue_lock, queue, ready, deferred,
-- result, schedule, started, successor, topic_binding, worker.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalAddQueueRows
    @queue_id int
as
begin
-- purpose   Insert the row of queue_lock, the limit lock and the lanes of a new queue.
-- locks     new rows only
-- differs   PostgreSQL opens lanes when they are first used
    set nocount on;
    insert into rowq.queue_lock (queue_id) values (@queue_id);
    insert into rowq.limit_lock with (rowlock) (queue_id) values (@queue_id);

    -- Most queues use only the lanes of the default priority: open them now.
    insert into rowq.lane with (rowlock) (queue_id, lane, is_open)
    select @queue_id, v.lane, iif(v.lane in (10, 11), 1, 0)
    from (
        values (-22 /* callers */), (-21 /* election */), (-8 /* history */), (-7 /* result */),
               (-6 /* expiry */), (-5 /* started */), (-4 /* deferred */), (-3 /* finished */),
               (-2 /* delayed */), (-1 /* claim */), (0), (1), (2), (3), (4), (5), (6), (7), (8),
               (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19)
    ) v (lane);
end
go

create or alter procedure rowq.InternalEnterQueue
    @queue_name nvarchar(max),
    @queue_id int output,
    @lease_seconds int = null output,
    @max_attempts int = null output,
    @archive_days int = null output,
    @is_paused bit = null output,
    @max_body_length int = null output,
    @group_limit int = null output,
    @result_seconds float = null output,
    @history_days int = null output
as
begin
-- purpose   Return the id and the settings of a queue and prevent it from being dropped.
-- locks     the queue, shared, until the transaction ends; waits for an open drop
-- errors    RQ701 RQ711
-- differs   on PostgreSQL the first insert waits for a drop
    set nocount on;
    declare @queue_key varbinary(402);
    set @queue_id = null;

    -- A longer text is not a queue name, but the conversion below would cut it to one.
    if datalength(@queue_name) <= 400
    begin
        -- The row of queue_lock stays locked until the transaction ends (repeatableread).
        set @queue_key = convert(varbinary(402), @queue_name + N'.');
        select @queue_id = q.queue_id, @lease_seconds = q.lease_seconds,
               @max_attempts = q.max_attempts, @archive_days = q.archive_days,
               @is_paused = iif(q.paused_at is null, 0, 1), @max_body_length = q.max_body_length,
               @group_limit = q.group_limit, @result_seconds = q.result_seconds,
               @history_days = q.history_days
        from rowq.queue q
        inner join rowq.queue_lock p with (rowlock, repeatableread, forceseek)
            on p.queue_id = q.queue_id
        where q.queue_key = @queue_key
        option (loop join, force order, maxdop 1, keepfixed plan);
    end;
    if @queue_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go

create or alter procedure rowq.InternalRefuseQueue
    @queue_name nvarchar(max)
as
begin
-- purpose   Raise the error for a missing or unknown queue name.
-- errors    RQ701 RQ711
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ701 queue_not_found: queue "', left(@queue_name, 100), N'" does not exist'
    );
    if @queue_name is null
        exec rowq.InternalRefuse N'queue_name is required';
    -- throw reads %% as %, so each % of the text is doubled.
    set @text = replace(@text, N'%', N'%%');
    throw 52701, @text, 1;
end
go

create or alter procedure rowq.InternalDeleteQueue
    @queue_id int
as
begin
-- purpose   Delete a queue and all of its rows.
-- locks     all rows of the queue
    set nocount on;
    -- Delete the name first: an interrupted call leaves rows out of reach, never a queue without
    -- some of its messages. forceseek keeps each statement on this queue's rows: a scan would wait
    -- for rows of other queues, or lock them.
    delete t from rowq.queue t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.ready t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.delayed t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.claim t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.leased t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.dead t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.dedup t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.group_waiting t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.group_slot t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.deferred t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.blocked t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.successor t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.expiry t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t
    from rowq.result t with (index (result_pk), rowlock, forceseek)
    where t.queue_id = @queue_id;
    delete t
    from rowq.history t with (index (history_pk), rowlock, forceseek)
    where t.queue_id = @queue_id;
    delete t from rowq.started t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.limit_lock t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.topic_binding t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.worker t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.schedule t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.finished t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.message t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t
    from rowq.archived t with (index (archived_pk), forceseek)
    where t.queue_id = @queue_id;
    delete t from rowq.lane t with (rowlock, forceseek) where t.queue_id = @queue_id;
    delete t from rowq.queue_lock t with (rowlock, forceseek) where t.queue_id = @queue_id;
end
go

create or alter procedure rowq.InternalLockQueueExclusive
    @queue_id int,
    @queue_name nvarchar(max)
as
begin
-- purpose   Lock a queue against calls that add or move messages; raise an error if it stays in use.
-- locks     the queue, exclusively; 10 tries of 20 ms
-- errors    RQ701 RQ705
-- differs   other engines lock a table, or wait once for up to 1 s
    set nocount on;
    set xact_abort off;
    set lock_timeout 20;
    declare @tries_left int = 10;
    declare @pause char(12) = '00:00:00.080';
    declare @found_queue_id int;

    -- Later sessions queue behind a waiting lock request. So wait briefly, and let them through
    -- before the next try.
    while 1 = 1
    begin
        begin try
            -- It stays null if another session has dropped the queue.
            select @found_queue_id = p.queue_id
            from rowq.queue_lock p with (rowlock, xlock, forceseek)
            where p.queue_id = @queue_id;
            break;
        end try
        begin catch
            -- 1222: lock timeout.
            if error_number() <> 1222
                throw;
        end catch;
        set @tries_left -= 1;
        if @tries_left = 0
            throw 52705, N'RQ705 queue_busy: open transactions use the queue; retry', 1;
        waitfor delay @pause;
    end;
    if @found_queue_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go

create or alter procedure rowq.InternalRefuseNotEmpty
    @queue_id int,
    @queue_name nvarchar(max)
as
begin
-- purpose   Raise an error if a queue has messages or an archive.
-- locks     the first row of each kind, shared while it is read; waits for a session that has
--           locked it
-- errors    RQ704
    set nocount on;
    declare @text nvarchar(2048) = concat(
        N'RQ704 queue_not_empty: queue "', left(@queue_name, 100),
        N'" has messages or an archive; use force to drop them'
    );
    -- throw reads %% as %, so each % of the text is doubled.
    set @text = replace(@text, N'%', N'%%');
    if exists (select 1 from rowq.ready r with (readcommittedlock) where r.queue_id = @queue_id)
        or exists (
            select 1 from rowq.delayed d with (readcommittedlock) where d.queue_id = @queue_id
        )
        or exists (select 1 from rowq.claim c with (readcommittedlock) where c.queue_id = @queue_id)
        or exists (select 1 from rowq.dead d with (readcommittedlock) where d.queue_id = @queue_id)
        or exists (
            select 1 from rowq.group_waiting g with (readcommittedlock) where g.queue_id = @queue_id
        )
        or exists (
            select 1 from rowq.blocked b with (readcommittedlock) where b.queue_id = @queue_id
        )
        or exists (
            select 1 from rowq.finished f with (readcommittedlock) where f.queue_id = @queue_id
        )
        or exists (
            select 1 from rowq.archived a with (readcommittedlock) where a.queue_id = @queue_id
        )
        throw 52704, @text, 1;
end
go

create or alter procedure rowq.InternalRequireQueue
    @queue_name nvarchar(max),
    @queue_id int output,
    @lease_seconds int = null output,
    @max_attempts int = null output,
    @archive_days int = null output,
    @is_paused bit = null output,
    @max_body_length int = null output,
    @group_limit int = null output,
    @result_seconds float = null output,
    @history_days int = null output
as
begin
-- purpose   Return the id and the settings of a queue; raise an error if it does not exist.
-- locks     the row of the queue, shared, while it is read; none with row versions
-- errors    RQ701 RQ711
    set nocount on;
    declare @queue_key varbinary(402);
    set @queue_id = null;

    -- A longer text is not a queue name, but the conversion below would cut it to one.
    if datalength(@queue_name) <= 400
    begin
        set @queue_key = convert(varbinary(402), @queue_name + N'.');
        select @queue_id = q.queue_id, @lease_seconds = q.lease_seconds,
               @max_attempts = q.max_attempts, @archive_days = q.archive_days,
               @is_paused = iif(q.paused_at is null, 0, 1), @max_body_length = q.max_body_length,
               @group_limit = q.group_limit, @result_seconds = q.result_seconds,
               @history_days = q.history_days
        from rowq.queue q
        where q.queue_key = @queue_key;
    end;
    if @queue_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go

create or alter procedure rowq.InternalPurgeStep
    @queue_id int,
    @limit int,
    @owns_transaction bit,
    @stage smallint output,
    @from_key varbinary(802) output,
    @from bigint output,
    @removed int output
as
begin
-- purpose   Delete up to @limit messages of one stage.
-- locks     blocked, group_waiting, ready, delayed or dead rows, skipping locked ones; message rows
--           and then a slot of each group, tried; then as InternalFinish
--
-- Stages: blocked (-2), waiting in groups (-1), one lane (0 to 19), delayed (20), dead (21).
    set nocount on;
    declare @since datetime2(6), @locked int;
    declare @found table (
        group_key  varbinary(802) not null,
        message_id bigint not null,
        primary key (group_key, message_id)
    );
    declare @held table (group_key varbinary(802) not null primary key);
    declare @taken rowq.message_list;

    -- Continue after the last row: the index still holds the deleted rows before it.
    if @stage = -1
    begin
        insert into @found (group_key, message_id)
        select top (@limit) g.group_key, g.message_id
        from rowq.group_waiting g with (rowlock, readpast, readcommittedlock, forceseek)
        where g.queue_id = @queue_id
          and g.group_key >= @from_key
          and (g.group_key > @from_key or g.message_id > @from)
        order by g.group_key, g.message_id
        option (maxdop 1, keepfixed plan);
        set @removed = @@rowcount;
        if @removed = 0
        begin
            set @stage = 0;
            set @from = 0;
            return;
        end;
        select top (1) @from_key = f.group_key, @from = f.message_id
        from @found f
        order by f.group_key desc, f.message_id desc;

        -- Lock the messages before the slots of their groups, as a producer does that has named one
        -- of them and then takes a slot.
        select @locked = count(m.message_id)
        from @found f
        inner join rowq.message m
            with (rowlock, xlock, forceseek (message_pk (queue_id, message_id)))
            on m.queue_id = @queue_id
           and m.message_id = f.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
        -- Hold a slot of each group, so that no session skips these messages. Skip groups without a
        -- free slot.
        insert into @held (group_key)
        select k.group_key
        from (select distinct f.group_key from @found f) k
        cross apply (
            select top (1) t.slot_no
            from rowq.group_slot t
                with (
                    rowlock, updlock, readpast, readcommittedlock,
                    forceseek (group_slot_pk (queue_id, group_key))
                )
            where t.queue_id = @queue_id
              and t.group_key = k.group_key
            order by t.slot_no
        ) t
        option (loop join, force order, maxdop 1, keepfixed plan);
        delete g
        output deleted.message_id, deleted.lane, 0, 0, 1
        into @taken (message_id, lane, place, attempt, is_without_slot)
        from @held h
        inner join @found f on f.group_key = h.group_key
        inner join rowq.group_waiting g with (rowlock, readpast, readcommittedlock, forceseek)
            on g.queue_id = @queue_id
           and g.group_key = f.group_key
           and g.message_id = f.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
        set @removed = @@rowcount;
        if @removed > 0
            exec rowq.InternalFinish @queue_id, 0, @taken, N'cancelled', @owns_transaction;
        return;
    end;

    if @stage = -2
    begin
        with head as (
            select top (@limit) b.queue_id, b.message_id, b.lane
            from rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where b.queue_id = @queue_id
              and b.message_id >= @from
            order by b.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.message_id, 0, 1
        into @taken (message_id, lane, place, attempt, is_without_slot)
        option (maxdop 1, keepfixed plan);
    end;
    else if @stage < 20
    begin
        with head as (
            select top (@limit) r.queue_id, r.lane, r.seq, r.message_id, r.attempt
            from rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where r.queue_id = @queue_id
              and r.lane = @stage
              and r.seq >= @from
            order by r.seq, r.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt
        into @taken (message_id, lane, place, attempt)
        option (maxdop 1, keepfixed plan);
    end;
    else if @stage = 20
    begin
        exec rowq.InternalFromMicroseconds @from, @since output;
        with head as (
            select top (@limit) d.queue_id, d.due_at, d.message_id, d.lane, d.attempt, d.group_key
            from rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where d.queue_id = @queue_id
              and d.due_at >= @since
            order by d.due_at, d.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane,
               datediff_big(microsecond, '19700101', deleted.due_at), deleted.attempt,
               iif(deleted.group_key is null, 0, 1)
        into @taken (message_id, lane, place, attempt, is_without_slot)
        option (maxdop 1, keepfixed plan);
    end;
    else
    begin
        with head as (
            select top (@limit) d.queue_id, d.message_id, d.lane, d.attempt, d.holds_slot
            from rowq.dead d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where d.queue_id = @queue_id
              and d.message_id >= @from
            order by d.message_id
        )
        delete from head
        output deleted.message_id, deleted.lane, deleted.message_id, deleted.attempt,
               iif(deleted.holds_slot = 1, 0, 1)
        into @taken (message_id, lane, place, attempt, is_without_slot)
        option (maxdop 1, keepfixed plan);
    end;

    select @removed = count(*), @from = coalesce(max(j.place), 0) from @taken j;
    if @removed = 0
        set @stage += 1;
    else
        exec rowq.InternalFinish @queue_id, 0, @taken, N'cancelled', @owns_transaction;
end
go

create or alter procedure rowq.InternalLockQueueShared
    @queue_id int,
    @queue_name nvarchar(max)
as
begin
-- purpose   Prevent a queue from being dropped while messages are added or moved.
-- locks     the queue, shared, until the transaction ends; waits for an open drop
-- errors    RQ701
-- differs   on PostgreSQL the first insert waits for a drop
    set nocount on;
    declare @found_queue_id int;
    -- Lock the row until the transaction ends (repeatableread). @found_queue_id is null if the
    -- queue was dropped.
    select @found_queue_id = p.queue_id
    from rowq.queue_lock p with (rowlock, repeatableread, forceseek)
    where p.queue_id = @queue_id;
    if @found_queue_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go
