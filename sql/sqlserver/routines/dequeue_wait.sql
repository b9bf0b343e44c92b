set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.DequeueWait
    @queue_name nvarchar(max),
    @batch_size int = 1,
    @worker_name nvarchar(max) = null,
    @lease_seconds int = null,
    @wait_seconds float = 20
as
begin
-- routine   DequeueWait
-- version   1
-- purpose   Dequeue like dequeue_fast, but wait until a message is ready or the time is up.
-- promise   P03 P17
-- locks     as dequeue_fast; while it waits, the session lock rowq.wait.<queue_id>
-- commits   after each poll, so that no lock is held while it waits
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array, in a result set of one column
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort off;
    declare @text nvarchar(2048) = concat(
        N'RQ713 wrong_transaction_state: ',
        N'dequeue_wait commits while it waits; call it outside a transaction'
    );
    declare @until datetime2(6), @left_ms int, @pause_ms int = 20, @pause char(12), @queue_id int,
        @claim_id bigint, @lease_until datetime2(6), @lock nvarchar(255), @turn int = -1;

    exec rowq.InternalCheckRange N'wait_seconds', @wait_seconds, 0, 3600, @is_required = 1;
    -- Under implicit_transactions (bit 2) the first poll would begin a transaction of the caller.
    if @@trancount > 0 or @@options & 2 = 2
        throw 52713, @text, 1;
    set @until = dateadd(millisecond, cast(@wait_seconds * 1000 as int), sysutcdatetime());

    begin try
        while 1 = 1
        begin
            exec rowq.InternalDequeue
                @queue_name, @batch_size, @worker_name, @lease_seconds,
                @queue_id output, @claim_id output, @lease_until output,
                -- The answer is one value of at most 2 GB, and JSON may need 6 characters for one.
                @most_bytes = 67108864;
            set @left_ms = datediff_big(millisecond, sysutcdatetime(), @until);
            if @claim_id is not null or @left_ms <= 0
                break;

            if @turn < 0
            begin
                -- The poller polls every 20 to 100 ms. Other waiters wait for its lock, and poll
                -- once a second in case the lock was left behind.
                set @lock = concat(N'rowq.wait.', @queue_id);
                -- Release it until it is free: an interrupted call may have left this session
                -- holding it more than once.
                while applock_mode(N'public', @lock, N'Session') <> N'NoLock'
                    exec sys.sp_releaseapplock @Resource = @lock, @LockOwner = N'Session';
                set @left_ms = iif(@left_ms > 1000, 1000, @left_ms);
                exec @turn = sys.sp_getapplock
                    @Resource = @lock, @LockMode = N'Exclusive', @LockOwner = N'Session',
                    @LockTimeout = @left_ms;
                -- -1: timed out. Lower results come at once, so pause like the poller.
                if @turn >= -1
                    continue;
            end;

            set @left_ms = iif(@left_ms > @pause_ms, @pause_ms, @left_ms);
            set @pause = concat(N'00:00:00.', right(concat(N'00', @left_ms), 3));
            waitfor delay @pause;
            set @pause_ms = iif(@pause_ms > 50, 100, @pause_ms * 2);
        end;
        if @turn >= 0
            exec sys.sp_releaseapplock @Resource = @lock, @LockOwner = N'Session';
    end try
    begin catch
        if @turn >= 0
            exec sys.sp_releaseapplock @Resource = @lock, @LockOwner = N'Session';
        throw;
    end catch;

    set transaction isolation level read committed;
    select (
        select @claim_id as claim_id, m.message_id, l.attempt, m.message_type,
               json_query(m.headers, '$') as headers, m.body, m.body_binary,
               concat(convert(nvarchar(30), m.enqueued_at, 126), N'+00:00') as enqueued_at,
               concat(convert(nvarchar(30), @lease_until, 126), N'+00:00') as lease_until,
               m.last_error
        from rowq.leased l with (forceseek)
        inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
            on m.queue_id = @queue_id
           and m.message_id = l.message_id
        where l.queue_id = @queue_id
          and l.claim_id = @claim_id
        order by l.lane, l.seq, l.message_id
        for json path, include_null_values
    ) as messages
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go
