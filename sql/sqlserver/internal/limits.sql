-- Limits: max_leased and rate_limit.
--
-- A dequeue from a limited queue counts the leased messages and the deliveries of the last
-- rate_seconds, and leases no more than the limits allow. It counts first without a lock, so that
-- polling a queue at its limit neither waits nor writes, then under the limit lock (the queue's
-- row in limit_lock), so that two dequeues cannot use the same capacity. There are no counters
-- that could leak capacity: a finished, reaped or rolled-back claim no longer counts as leased.
--
--   dequeue -> admit -> available_capacity, lock_limit
--   maintain_delivery -> purge_started
--
-- Writes lane, started. Only reads claim, limit_lock, leased, queue.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalAdmit
    @queue_id int,
    @max_leased int,
    @rate_limit int output,
    @rate_seconds float,
    @wanted int,
    @capacity int output
as
begin
-- purpose   Return how many messages a dequeue may lease, and hold the queue's limit lock.
-- locks     the limit lock: waits up to 100 ms, holds it until the transaction ends
-- differs   PostgreSQL refuses an old snapshot; here routines read committed rows at any isolation
--           level
    set nocount on;
    declare @is_locked bit, @is_paused bit;

    -- Count without the lock first: polling a queue at its limit must not wait or take the lock.
    exec rowq.InternalAvailableCapacity
        @queue_id, @max_leased, @rate_limit, @rate_seconds, @wanted, @capacity output;
    if @capacity = 0
        return;
    exec rowq.InternalLockLimit @queue_id, @is_locked output;
    set @capacity = 0;
    if @is_locked = 0
        return;

    -- Read and count again in new statements: they start after the lock is granted, so they include
    -- the previous holder's claim and changed settings.
    select @is_paused = iif(q.paused_at is null, 0, 1), @max_leased = q.max_leased,
           @rate_limit = q.rate_limit, @rate_seconds = q.rate_seconds
    from rowq.queue q with (forceseek)
    where q.queue_id = @queue_id;
    if @is_paused = 0
        exec rowq.InternalAvailableCapacity
            @queue_id, @max_leased, @rate_limit, @rate_seconds, @wanted, @capacity output;
end
go

create or alter procedure rowq.InternalAvailableCapacity
    @queue_id int,
    @max_leased int,
    @rate_limit int,
    @rate_seconds float,
    @wanted int,
    @capacity int output
as
begin
-- purpose   Return how many of @wanted messages the queue's limits allow now.
-- locks     none with row versions; else shared locks while reading, waits up to 100 ms
    set nocount on;
    -- Without row versions these reads wait for a session that is ending a lease. After 100 ms
    -- error 1222 ends the dequeue, which then returns nothing.
    set lock_timeout 100;
    declare @first bigint, @count int = 0, @since datetime2(6);
    set @capacity = @wanted;

    if @max_leased > 0
    begin
        -- Start at the very first claim, so that claims committed late are counted. A claim whose
        -- end is not committed counts.
        select top (1) @first = c.claim_id
        from rowq.claim c with (forceseek)
        where c.queue_id = @queue_id
        order by c.claim_id
        option (maxdop 1, keepfixed plan);
        if @first is not null
            select @count = count(*)
            from (
                select top (@max_leased) 1 as one
                from rowq.leased l with (forceseek)
                where l.queue_id = @queue_id
                  and l.claim_id >= @first
            ) h
            option (maxdop 1, keepfixed plan);
        set @capacity = iif(@max_leased - @count < @capacity, @max_leased - @count, @capacity);
    end;

    if @rate_limit > 0
    begin
        set @since = dateadd(
            microsecond, -cast(round((@rate_seconds - floor(@rate_seconds)) * 1e6, 0) as int),
            dateadd(second, -cast(floor(@rate_seconds) as int), sysutcdatetime())
        );
        select @count = coalesce(sum(s.messages), 0)
        from rowq.started s with (forceseek)
        where s.queue_id = @queue_id
          and s.started_at > @since
        option (maxdop 1, keepfixed plan);
        set @capacity = iif(@rate_limit - @count < @capacity, @rate_limit - @count, @capacity);
    end;
    if @capacity < 0
        set @capacity = 0;
end
go

create or alter procedure rowq.InternalLockLimit
    @queue_id int,
    @is_locked bit output
as
begin
-- purpose   Lock the limit lock of a queue; return whether it was free within 100 ms.
-- locks     the limit lock: waits up to 100 ms
    set nocount on;
    declare @tries_left int = 10, @pause char(12) = '00:00:00.010', @limit_lock int;

    while 1 = 1
    begin
        select @limit_lock = g.queue_id
        from rowq.limit_lock g with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where g.queue_id = @queue_id
        option (maxdop 1, keepfixed plan);
        if @limit_lock is not null or @tries_left = 0
            break;
        set @tries_left -= 1;
        waitfor delay @pause;
    end;
    set @is_locked = iif(@limit_lock is null, 0, 1);
end
go

create or alter procedure rowq.InternalPurgeStarted
    @queue_id int,
    @seconds float,
    @limit int,
    @owns_transaction bit
as
begin
-- purpose   Delete up to @limit rows of started that are older than @seconds.
-- locks     the deleted rows, skipping locked ones; lane -5, skipped if locked
    set nocount on;
    declare @floor bigint, @is_open bit, @since datetime2(6);
    declare @before datetime2(6) = dateadd(
        microsecond, -cast(round((@seconds - floor(@seconds)) * 1e6, 0) as int),
        dateadd(second, -cast(floor(@seconds) as int), sysutcdatetime())
    );

    select @floor = l.floor, @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -5 /* started */;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    with head as (
        select top (@limit) s.queue_id, s.started_at, s.claim_id
        from rowq.started s with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where s.queue_id = @queue_id
          and s.started_at >= @since
          and s.started_at < @before
        order by s.started_at, s.claim_id
    )
    delete from head
    option (maxdop 1, keepfixed plan);

    -- From now on maintain moves this floor.
    if @is_open = 0 and @owns_transaction = 1
        update l
        set is_open = 1
        from rowq.lane l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where l.queue_id = @queue_id
          and l.lane = -5 /* started */;
end
go
