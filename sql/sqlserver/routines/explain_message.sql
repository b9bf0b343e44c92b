set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.ExplainMessage
    @queue_name nvarchar(max),
    @message_id bigint
as
begin
-- routine   ExplainMessage
-- version   1
-- purpose   Return the reasons why a message is not delivered now, and what would change them.
-- promise   P42
-- locks     rows, shared while they are read, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   rows that other sessions have locked are not read
    set nocount on;
    set rowcount 0;
    set concat_null_yields_null on;
    set textsize 2147483647;
    set xact_abort off;
    declare @begun int, @queue_id int, @is_paused bit, @group_limit int, @max_leased int,
        @rate_limit int, @rate_seconds float, @is_blocked bit = 0;
    declare @enqueued_at datetime2(6), @due_at datetime2(6), @expires_at datetime2(6),
        @lease_until datetime2(6), @finished_at datetime2(6), @now datetime2(6) = sysutcdatetime();
    declare @state nvarchar(20), @ended nvarchar(20), @lane smallint, @attempt smallint,
        @claim_id bigint, @worker_name nvarchar(400), @group_key nvarchar(400),
        @group_bytes varbinary(802), @waits_for bigint, @progress nvarchar(4000);
    declare @predecessor_id bigint, @seq bigint, @floor bigint, @first bigint, @count int,
        @first_at datetime2(6), @last_at datetime2(6), @since datetime2(6);
    declare @reasons table (
        position    int identity(1, 1) not null primary key,
        reason      nvarchar(20) not null,
        clears_at   datetime2(6) null,
        blocking_id bigint null,
        claim_id    bigint null,
        worker_name nvarchar(400) null,
        detail      nvarchar(500) not null
    );

    begin try
        if @message_id is null
            exec rowq.InternalRefuse N'message_id is required';
        -- Under implicit_transactions this read opens the caller's transaction, at the caller's
        -- isolation level. @begun keeps the value out of the caller's results.
        select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
        set transaction isolation level read committed;
        exec rowq.InternalRequireQueue
            @queue_name, @queue_id output, @is_paused = @is_paused output,
            @group_limit = @group_limit output;
        select @max_leased = q.max_leased, @rate_limit = q.rate_limit,
               @rate_seconds = q.rate_seconds
        from rowq.queue q with (forceseek)
        where q.queue_id = @queue_id;

        select @enqueued_at = m.enqueued_at, @due_at = m.due_at, @group_key = m.group_key,
               @expires_at = m.expires_at
        from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
        where m.queue_id = @queue_id
          and m.message_id = @message_id;
        set @group_bytes = convert(varbinary(802), @group_key + N'.');
        if @enqueued_at is not null
            exec rowq.InternalLocateMessages
                @queue_id, @message_id, @enqueued_at, @group_key, @due_at output, @state output,
                @lane output, @attempt output, @claim_id output, @worker_name output,
                @lease_until output, @finished_at output, @waits_for output, @progress output;
        else
        begin
            select top (1) @ended = a.state
            from rowq.archived a
                with (index (archived_message_ix), rowlock, readpast, readcommittedlock)
            where a.queue_id = @queue_id
              and a.message_id = @message_id
            option (maxdop 1, keepfixed plan);
            if @ended is null
                select @ended = r.state
                from rowq.result r
                    with (
                        rowlock, readpast, readcommittedlock,
                        forceseek (result_pk (queue_id, message_id))
                    )
                where r.queue_id = @queue_id
                  and r.message_id = @message_id;
        end;
        if @state in (N'completed', N'cancelled', N'expired')
            set @ended = @state;

        if @ended is not null
            insert into @reasons (reason, detail)
            values (N'ended', N'it has ended: ' + @ended);
        else if @state is null
            insert into @reasons (reason, detail)
            values (
                N'unknown',
                N'it is not in the queue: not committed, rolled back, or ended with nothing kept'
            );
        else if @state = N'dead'
            insert into @reasons (reason, detail)
            values (N'dead', N'it is dead; reset makes it ready');
        else if @state = N'leased'
            insert into @reasons (reason, clears_at, claim_id, worker_name, detail)
            values (
                case
                    when @claim_id is null then N'held'
                    when @lease_until <= @now then N'lease_expired'
                    else N'leased'
                end,
                @lease_until, @claim_id, @worker_name,
                case
                    when @claim_id is null
                        then N'another session is moving it in an open transaction'
                    when @lease_until <= @now
                        then N'its lease has expired; the next maintain returns it'
                    else N'a worker holds it until the worker finishes it or its lease expires'
                end
            );
        else if @is_paused = 1
            insert into @reasons (reason, detail)
            values (N'paused', N'the queue is paused; resume_queue ends the pause');

        if @state = N'blocked'
            select @is_blocked = 1, @predecessor_id = b.predecessor_id
            from rowq.blocked b with (rowlock, readpast, readcommittedlock, forceseek)
            where b.queue_id = @queue_id
              and b.message_id = @message_id;
        if @is_blocked = 1
            exec rowq.InternalExplainPredecessor
                @queue_id, @predecessor_id, @state output, @first_at output, @claim_id output,
                @worker_name output;
        if @is_blocked = 1
            insert into @reasons (reason, clears_at, blocking_id, claim_id, worker_name, detail)
            values (
                case
                    when @state is null then N'deferred'
                    when @state = N'dead' then N'predecessor_dead'
                    else N'predecessor'
                end,
                iif(@state = N'dead', null, @first_at),
                iif(@state is null, null, @predecessor_id), @claim_id, @worker_name,
                case
                    when @state is null
                        then N'its predecessor has ended; the next maintain resumes it'
                    when @state = N'dead'
                        then N'its predecessor is dead; reset, cancel or discard that'
                    else N'it waits for its predecessor, which is ' + @state
                end
            );
        if @is_blocked = 1
            set @state = N'blocked';
        else if @state = N'blocked'
        begin
            -- A slot does not name its message, and there are few claims, so begin with these.
            select top (1) @first = c.claim_id
            from rowq.claim c with (rowlock, readpast, readcommittedlock, forceseek)
            where c.queue_id = @queue_id
            order by c.claim_id
            option (maxdop 1, keepfixed plan);
            insert into @reasons (reason, clears_at, blocking_id, claim_id, worker_name, detail)
            select N'group', c.lease_until, h.message_id, h.claim_id, c.worker_name,
                   N'a message of its group is leased; the next one follows when it ends'
            from (
                select top (10000) l.claim_id, l.message_id
                from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
                where l.queue_id = @queue_id
                  and l.claim_id >= @first
            ) h
            inner join rowq.message m
                with (
                    rowlock, readpast, readcommittedlock,
                    forceseek (message_pk (queue_id, message_id))
                )
                on m.queue_id = @queue_id
               and m.message_id = h.message_id
            inner join rowq.claim c
                with (
                    rowlock, readpast, readcommittedlock, forceseek (claim_pk (queue_id, claim_id))
                )
                on c.queue_id = @queue_id
               and c.claim_id = h.claim_id
            where m.group_key = @group_key
            option (loop join, force order, maxdop 1, keepfixed plan);
            set @count = @@rowcount;

            insert into @reasons (reason, clears_at, detail)
            select iif(h.due_at > @now, N'group_pause', N'deferred'), h.due_at,
                   iif(
                       h.due_at > @now, N'its group pauses between two messages',
                       N'the next maintain passes on the slot of its group'
                   )
            from (
                select top (10000) d.due_at, d.group_key
                from rowq.deferred d with (rowlock, readpast, readcommittedlock, forceseek)
                where d.queue_id = @queue_id
                order by d.due_at, d.deferred_id
            ) h
            where h.group_key = @group_bytes
            option (maxdop 1, keepfixed plan);
            set @count += @@rowcount;

            if @count < @group_limit
            begin
                insert into @reasons (reason, blocking_id, detail)
                select N'group_dead', h.message_id,
                       N'a dead message holds the slot of its group; reset, cancel or discard it'
                from (
                    select top (10000) d.message_id, d.holds_slot
                    from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
                    where d.queue_id = @queue_id
                ) h
                inner join rowq.message m
                    with (
                        rowlock, readpast, readcommittedlock,
                        forceseek (message_pk (queue_id, message_id))
                    )
                    on m.queue_id = @queue_id
                   and m.message_id = h.message_id
                where h.holds_slot = 1
                  and m.group_key = @group_key
                option (loop join, force order, maxdop 1, keepfixed plan);
                set @count += @@rowcount;
            end;
            if @count < @group_limit
            begin
                insert into @reasons (reason, clears_at, blocking_id, detail)
                select N'group', h.due_at, h.message_id,
                       N'a message of its group is delayed after an attempt'
                from (
                    select top (10000) d.message_id, d.due_at, d.group_key
                    from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
                    where d.queue_id = @queue_id
                    order by d.due_at, d.message_id
                ) h
                inner join rowq.message m
                    with (
                        rowlock, readpast, readcommittedlock,
                        forceseek (message_pk (queue_id, message_id))
                    )
                    on m.queue_id = @queue_id
                   and m.message_id = h.message_id
                where h.group_key is null
                  and m.group_key = @group_key
                option (loop join, force order, maxdop 1, keepfixed plan);
                set @count += @@rowcount;
            end;
            if @count < @group_limit
            begin
                insert into @reasons (reason, blocking_id, detail)
                select N'group', h.message_id,
                       N'a message of its group is ready and is delivered first'
                from (
                    select top (10000) r.message_id
                    from rowq.lane l with (readuncommitted, forceseek)
                    inner join rowq.ready r
                        with (
                            rowlock, readpast, readcommittedlock,
                            forceseek (ready_pk (queue_id, lane, seq))
                        )
                        on r.queue_id = l.queue_id
                       and r.lane = l.lane
                       and r.seq >= l.floor
                    where l.queue_id = @queue_id
                      and l.lane >= 0
                ) h
                inner join rowq.message m
                    with (
                        rowlock, readpast, readcommittedlock,
                        forceseek (message_pk (queue_id, message_id))
                    )
                    on m.queue_id = @queue_id
                   and m.message_id = h.message_id
                where m.group_key = @group_key
                option (loop join, force order, maxdop 1, keepfixed plan);
                set @count += @@rowcount;
            end;

            select @first = count(*)
            from (
                select top (10000) g.message_id
                from rowq.group_waiting g with (rowlock, readpast, readcommittedlock, forceseek)
                where g.queue_id = @queue_id
                  and g.group_key = @group_bytes
                  and g.message_id < @message_id
            ) h
            option (maxdop 1, keepfixed plan);
            if @first > 0 or @count = 0
                insert into @reasons (reason, detail)
                values (
                    N'group',
                    iif(
                        @first = 1, N'1 message of its group waits before it',
                        concat(@first, N' messages of its group wait before it')
                    )
                );
        end;

        if @state = N'delayed' or @state = N'blocked' and @due_at > @now
            insert into @reasons (reason, clears_at, detail)
            values (
                iif(@due_at > @now, N'delayed', N'overdue'), @due_at,
                iif(
                    @due_at > @now, N'it waits for its time; alter_message changes it',
                    N'its time has come; the next maintain makes it ready'
                )
            );

        if @state = N'ready'
        begin
            select @floor = l.floor
            from rowq.lane l with (readuncommitted, forceseek)
            where l.queue_id = @queue_id
              and l.lane = @lane;
            -- A message that was never returned has its enqueued_at as seq.
            select @seq = r.seq
            from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
            where r.queue_id = @queue_id
              and r.lane = @lane
              and r.seq = datediff_big(microsecond, '19700101', @enqueued_at)
              and r.message_id = @message_id;
            if @seq is null
                select @seq = h.seq
                from (
                    select top (10000) r.seq, r.message_id
                    from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
                    where r.queue_id = @queue_id
                      and r.lane = @lane
                      and r.seq >= @floor
                    order by r.seq, r.message_id
                ) h
                where h.message_id = @message_id
                option (maxdop 1, keepfixed plan);
            if @seq < @floor
                insert into @reasons (reason, detail)
                values (
                    N'late',
                    N'it was committed after messages behind it were delivered; '
                    + N'the next maintain finds it'
                );

            select top (1) @first = c.claim_id
            from rowq.claim c with (rowlock, readpast, readcommittedlock, forceseek)
            where c.queue_id = @queue_id
            order by c.claim_id
            option (maxdop 1, keepfixed plan);
            select @first_at = min(h.lease_until), @last_at = max(h.lease_until)
            from (
                select top (10000) c.lease_until
                from rowq.claim c with (rowlock, readpast, readcommittedlock, forceseek)
                where c.queue_id = @queue_id
                  and c.claim_id >= @first
            ) h
            option (maxdop 1, keepfixed plan);
            if @max_leased > 0
            begin
                select @count = count(*)
                from (
                    select top (@max_leased) l.message_id
                    from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
                    where l.queue_id = @queue_id
                      and l.claim_id >= @first
                ) h
                option (maxdop 1, keepfixed plan);
                if @count >= @max_leased
                    insert into @reasons (reason, clears_at, detail)
                    values (
                        N'max_leased', @first_at,
                        concat(N'the queue is at its max_leased of ', @max_leased)
                    );
            end;

            if @rate_limit > 0
            begin
                set @since = dateadd(
                    microsecond,
                    -cast(round((@rate_seconds - floor(@rate_seconds)) * 1e6, 0) as int),
                    dateadd(second, -cast(floor(@rate_seconds) as int), @now)
                );
                select @count = coalesce(sum(h.messages), 0), @first_at = min(h.started_at)
                from (
                    select top (10000) s.messages, s.started_at
                    from rowq.started s with (rowlock, readpast, readcommittedlock, forceseek)
                    where s.queue_id = @queue_id
                      and s.started_at > @since
                    order by s.started_at, s.claim_id
                ) h
                option (maxdop 1, keepfixed plan);
                if @count >= @rate_limit
                    insert into @reasons (reason, clears_at, detail)
                    values (
                        N'rate_limit',
                        dateadd(
                            microsecond,
                            cast(round((@rate_seconds - floor(@rate_seconds)) * 1e6, 0) as int),
                            dateadd(second, cast(floor(@rate_seconds) as int), @first_at)
                        ),
                        concat(
                            N'the queue is at its rate_limit of ', @rate_limit, N' per rate_seconds'
                        )
                    );
            end;

            -- The lanes before its own, then its own up to it.
            set @seq = coalesce(@seq, 9223372036854775807);
            select @count = count(*)
            from (
                select top (10000) r.message_id
                from rowq.lane l with (readuncommitted, forceseek)
                inner join rowq.ready r
                    with (
                        rowlock, readpast, readcommittedlock,
                        forceseek (ready_pk (queue_id, lane, seq))
                    )
                    on r.queue_id = l.queue_id
                   and r.lane = l.lane
                   and r.seq >= l.floor
                where l.queue_id = @queue_id
                  and l.lane >= 0
                  and l.lane < @lane
            ) h
            option (loop join, force order, maxdop 1, keepfixed plan);
            select @count = @count + count(*)
            from (
                select top (10000) r.message_id
                from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
                where r.queue_id = @queue_id
                  and r.lane = @lane
                  and r.seq >= @floor
                  and r.seq <= @seq
                  and (r.seq < @seq or r.message_id < @message_id)
            ) h
            option (maxdop 1, keepfixed plan);
            set @count = iif(@count > 10000, 10000, @count);
            insert into @reasons (reason, detail)
            values (
                iif(@count = 0, N'next', N'behind'),
                case @count
                    when 0 then N'the next dequeue that leases a message leases this one'
                    when 1 then N'1 ready message is before it'
                    else concat(@count, N' ready messages are before it')
                end
            );

            if @is_paused = 0 and (@last_at is null or @last_at <= @now)
                insert into @reasons (reason, detail)
                select N'no_worker',
                       N'no message of the queue is leased, '
                       + N'and no worker has reported for 60 seconds'
                where not exists (
                    select 1
                    from rowq.worker w with (rowlock, readpast, readcommittedlock, forceseek)
                    where w.queue_id = @queue_id
                      and w.last_seen_at > dateadd(second, -60, @now)
                );
        end;

        if @expires_at is not null and @state in (N'ready', N'delayed', N'blocked')
            insert into @reasons (reason, clears_at, detail)
            values (N'expires', @expires_at, N'maintain expires it from this time on');
        insert into @reasons (reason, detail)
        select N'no_maintain',
               N'maintain is late by more than 5 seconds; run a worker, or call maintain'
        where exists (
            select 1 from @reasons n where n.clears_at < dateadd(second, -5, @now)
        );

        select n.reason, n.clears_at, n.blocking_id, n.claim_id, n.worker_name, n.detail
        from @reasons n
        order by n.position;
    end try
    begin catch
        -- With xact_abort off an error ends only its statement; throw ends the procedure.
        throw;
    end catch;
end
go
