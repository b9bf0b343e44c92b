-- Dequeue: lease messages, and wait for them.
--
-- A dequeue locks the first rows of the best lane, skips locked ones, deletes them from ready and
-- inserts one claim: one lease, one heartbeat and one complete per batch. A rollback restores
-- everything. If nothing is ready, it promotes due messages and runs some deferred work, so a queue
-- without maintain still moves. dequeue_wait repeats that in short transactions until a message
-- comes or the time is up.
--
--   dequeue_fast, complete_and_dequeue, dequeue_wait -> dequeue -> pop_ready, trim_claim
--
-- Writes claim, leased, ready, started. Only reads lane, message, queue_lock, queue.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalDequeue
    @queue_name nvarchar(max),
    @batch_size int,
    @worker_name nvarchar(max),
    @lease_seconds int,
    @queue_id int output,
    @claim_id bigint output,
    @lease_until datetime2(6) output,
    @most_bytes bigint = null,
    @old_claim_id bigint = null,
    @message_ids nvarchar(max) = null,
    @results nvarchar(max) = null,
    @stale_ids nvarchar(max) = null output
as
begin
-- purpose   Lease ready messages, up to @batch_size or @most_bytes, to one new claim.
-- locks     the queue, shared; the limit lock, if the queue has limits: waits up to 100 ms; ready
--           rows, skipping locked ones; the new claim row; before them as InternalCompleteClaim
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   shared by three routines, because a procedure cannot read another's result set
--
-- It first completes @old_claim_id, if that is set, in the same transaction.
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @tries_left int = 5, @begun int, @queue_key varbinary(402), @default_seconds int,
        @is_paused bit, @has_deferred bit, @max_leased int, @rate_limit int, @rate_seconds float,
        @is_full bit = 0, @capacity int, @taken int, @leased_at datetime2(6), @promoted int,
        @solved int;

    -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
    if @owns_transaction = 0
        set xact_abort off;
    while @tries_left > 0
    begin
        begin try
            -- Under implicit_transactions this read begins the caller's transaction, before the
            -- isolation level changes. @begun only keeps the value out of the results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            set @queue_id = null;
            set @claim_id = null;
            set @taken = 0;
            if @batch_size is null or @batch_size not between 1 and 1000
                exec rowq.InternalCheckRange N'batch_size', @batch_size, 1, 1000, @is_required = 1;
            if @lease_seconds not between 1 and 86400
                exec rowq.InternalCheckRange N'lease_seconds', @lease_seconds, 1, 86400;
            if @worker_name is not null
                and len((@worker_name + N'.') collate Latin1_General_100_CI_AS_SC) > 201
                exec rowq.InternalRefuse N'worker_name must be at most 200 characters';

            if @owns_transaction = 1
                begin transaction;
            -- InternalEnterQueue, inlined.
            if datalength(@queue_name) <= 400
            begin
                set @queue_key = convert(varbinary(402), @queue_name + N'.');
                select @queue_id = q.queue_id, @default_seconds = q.lease_seconds,
                       @is_paused = iif(q.paused_at is null, 0, 1), @has_deferred = q.has_deferred,
                       @max_leased = q.max_leased, @rate_limit = q.rate_limit,
                       @rate_seconds = q.rate_seconds
                from rowq.queue q
                inner join rowq.queue_lock p with (rowlock, repeatableread, forceseek)
                    on p.queue_id = q.queue_id
                where q.queue_key = @queue_key
                option (loop join, force order, maxdop 1, keepfixed plan);
            end;
            if @queue_id is null
                exec rowq.InternalRefuseQueue @queue_name;
            -- Complete first: it may free capacity and make messages ready.
            if @old_claim_id is not null
            begin
                exec rowq.InternalCompleteClaim
                    @queue_id, @old_claim_id, @message_ids, @results, @owns_transaction,
                    @stale_ids output;
                -- Settings may have changed while that waited for the old claim.
                select @default_seconds = q.lease_seconds,
                       @is_paused = iif(q.paused_at is null, 0, 1), @has_deferred = q.has_deferred,
                       @max_leased = q.max_leased, @rate_limit = q.rate_limit,
                       @rate_seconds = q.rate_seconds
                from rowq.queue q with (forceseek)
                where q.queue_key = @queue_key
                option (maxdop 1, keepfixed plan);
            end;
            set @capacity = iif(@is_paused = 1 or @is_full = 1, 0, @batch_size);
            if @capacity > 0 and @max_leased + @rate_limit > 0
                exec rowq.InternalAdmit
                    @queue_id, @max_leased, @rate_limit output, @rate_seconds, @batch_size,
                    @capacity output;

            -- Writes start here. If the client disconnects, xact_abort rolls back the whole
            -- transaction.
            set xact_abort on;
            if @capacity > 0
            begin
                exec rowq.InternalPopReady
                    @queue_id, @capacity, @owns_transaction, @claim_id output, @taken output;
                if @taken = 0
                begin
                    -- Nothing is ready. Promote due messages and run deferred work now instead of
                    -- waiting for maintain.
                    exec rowq.InternalPromote
                        @queue_id, @capacity, @owns_transaction, @promoted output;
                    set @solved = 0;
                    if @promoted = 0 and @has_deferred = 1 and @owns_transaction = 1
                        exec rowq.InternalRunDeferred
                            @queue_id, 10, @owns_transaction, @solved output;
                    if @promoted > 0 or @solved > 0
                        exec rowq.InternalPopReady
                            @queue_id, @capacity, @owns_transaction, @claim_id output,
                            @taken output;
                end;
            end;

            if @taken > 0
            begin
                set @leased_at = sysutcdatetime();
                set @lease_until = dateadd(
                    second, coalesce(@lease_seconds, @default_seconds), @leased_at
                );
                insert into rowq.claim with (rowlock)
                    (queue_id, claim_id, leased_at, lease_until, worker_name)
                values (@queue_id, @claim_id, @leased_at, @lease_until, @worker_name);
                if @rate_limit > 0
                    insert into rowq.started with (rowlock)
                        (queue_id, started_at, claim_id, messages)
                    values (@queue_id, sysutcdatetime(), @claim_id, @taken);
                if @taken > 1 and @most_bytes is not null
                    exec rowq.InternalTrimClaim @queue_id, @claim_id, @most_bytes;
            end;
            else
                set @claim_id = null;

            if @owns_transaction = 1
                commit transaction;
            break;
        end try
        begin catch
            -- Do not end the caller's transaction. If the call had written, it is already
            -- uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;

            -- Without row versions a count may wait for a session that is ending a lease. If that
            -- takes too long there is no capacity. The caller's transaction keeps a completion, but
            -- the rollback above has undone it in our own: repeat it and lease nothing.
            set @is_full = iif(
                error_number() = 1222 and error_procedure() like N'%InternalAvailableCapacity', 1, 0
            );
            -- Retry a deadlock (1205), or a lock timeout while taking a group slot, in our own
            -- transaction.
            set @tries_left = iif(
                @owns_transaction = 1
                    and (
                        error_number() = 1205
                        or error_number() = 1222
                            and error_procedure() like N'%InternalTryTakeGroupSlot'
                        or @is_full = 1 and @old_claim_id is not null
                    ),
                @tries_left - 1, 0
            );
            if @tries_left > 0
                exec rowq.InternalPauseBeforeRetry;
            if @tries_left = 0
                and (@is_full = 0 or @owns_transaction = 1 and @old_claim_id is not null)
                throw;
        end catch;
    end;
end
go

create or alter procedure rowq.InternalPopReady
    @queue_id int,
    @limit int,
    @owns_transaction bit,
    @claim_id bigint output,
    @taken int output
as
begin
-- purpose   Lease up to @limit messages, best lane first; @claim_id is a new number if null.
-- locks     ready rows, skipping locked ones; in the caller's transaction lane -22, shared
    set nocount on;
    declare @left int = @limit;
    declare @lane smallint = -1, @next smallint, @callers_lane smallint, @floor bigint,
        @first bigint, @recent bigint;

    -- In the caller's transaction, hold lane -22 shared until it ends, so that no floor passes rows
    -- a rollback restores. @callers_lane only keeps the value out of the results.
    if @owns_transaction = 0
        select @callers_lane = l.lane
        from rowq.lane l with (rowlock, repeatableread, forceseek)
        where l.queue_id = @queue_id
          and l.lane = -22 /* callers */;

    while @left > 0
    begin
        -- A front lane (an even number) is usually empty, so check it here and skip the delete
        -- below. A tail lane gets its delete at once: a check would scan the same ghosts first.
        set @next = null;
        select top (1) @next = l.lane, @floor = l.floor
        from rowq.lane l with (readuncommitted, forceseek)
        where l.queue_id = @queue_id
          and l.lane > @lane
          and l.is_open = 1
          and (
              l.lane % 2 = 1
              or exists (
                  select 1
                  from rowq.ready r
                      with (
                          rowlock, readpast, readcommittedlock,
                          forceseek (ready_pk (queue_id, lane))
                      )
                  where r.queue_id = @queue_id
                    and r.lane = l.lane
                    and r.seq >= l.floor
              )
          )
        order by l.lane
        option (loop join, maxdop 1, keepfixed plan);
        if @next is null
            break;
        set @lane = @next;
        if @claim_id is null
            set @claim_id = next value for rowq.claim_seq;

        -- One seek to the floor, then a scan along the key that locks row by row and skips locked
        -- rows. An update lock would not do: it is granted beside a reader's shared lock, and then
        -- the delete waits for the reader. A plan for one row has no sort above the insert, which
        -- would need memory.
        with head as (
            select top (@left) r.queue_id, r.lane, r.seq, r.message_id, r.attempt
            from rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where r.queue_id = @queue_id
              and r.lane = @lane
              and r.seq >= @floor
            order by r.seq, r.message_id
        )
        delete from head
        output deleted.queue_id, @claim_id, deleted.lane, deleted.seq, deleted.message_id,
               deleted.attempt + 1
        into rowq.leased (queue_id, claim_id, lane, seq, message_id, attempt)
        option (maxdop 1, keepfixed plan, optimize for (@left = 1));
        set @next = @@rowcount;
        if @next = 0
            continue;
        set @left -= @next;

        if @owns_transaction = 1 and @claim_id % 12 = 0
        begin
            -- Moving the floor costs a write, so do it in 1 of 12 dequeues. Stay half a second
            -- behind now: recent messages may not be committed yet.
            set @recent = datediff_big(microsecond, '19700101', sysutcdatetime()) - 500000;
            select top (1) @first = l.seq
            from rowq.leased l with (forceseek)
            where l.queue_id = @queue_id
              and l.claim_id = @claim_id
              and l.lane = @lane
            order by l.seq;
            if @first > @recent
                set @first = @recent;
            if @first > @floor
                exec rowq.InternalMoveFloor @queue_id, @lane, @floor, @first;
        end;
    end;
    set @taken = @limit - @left;
end
go

create or alter procedure rowq.InternalTrimClaim
    @queue_id int,
    @claim_id bigint,
    @most_bytes bigint
as
begin
-- purpose   Return the messages of a new claim that exceed @most_bytes, except the first.
-- locks     rows of leased
    set nocount on;
    declare @lane smallint, @seq bigint, @message_id bigint;
    declare @rest rowq.message_list;

    -- 3 bytes of a binary body become 4 base64 characters, which take 8 bytes here: count 3 for
    -- each byte.
    select top (1) @lane = s.lane, @seq = s.seq, @message_id = s.message_id
    from (
        select l.lane, l.seq, l.message_id,
               row_number() over (order by l.lane, l.seq, l.message_id) as place,
               sum(
                   coalesce(datalength(m.body), 0) + coalesce(datalength(m.body_binary), 0) * 3
                   + coalesce(datalength(m.headers), 0) + coalesce(datalength(m.last_error), 0)
                   + 1000
               ) over (order by l.lane, l.seq, l.message_id rows unbounded preceding) as bytes
        from rowq.leased l with (forceseek)
        inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
            on m.queue_id = @queue_id
           and m.message_id = l.message_id
        where l.queue_id = @queue_id
          and l.claim_id = @claim_id
    ) s
    where s.place > 1
      and s.bytes > @most_bytes
    order by s.lane, s.seq, s.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @lane is null
        return;

    delete l
    output deleted.message_id, deleted.lane, deleted.seq, deleted.attempt
    into @rest (message_id, lane, place, attempt)
    from rowq.leased l with (rowlock, forceseek)
    where l.queue_id = @queue_id
      and l.claim_id = @claim_id
      and (
          l.lane > @lane
          or l.lane = @lane and l.seq > @seq
          or l.lane = @lane and l.seq = @seq and l.message_id >= @message_id
      )
    option (maxdop 1, keepfixed plan);
    exec rowq.InternalPushReady @queue_id, @rest, @is_front = 1, @spent = 1;
end
go
