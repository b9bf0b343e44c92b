-- Cancel: by a caller, or by expiry; and where a message is.
--
-- A message that waits is taken out of its place and ends as cancelled or expired. A leased message
-- stays with its worker: the cancel is recorded in the claim, the heartbeat returns it, and the
-- call that returns the message ends it. A message that expires has a row in expiry, which says
-- where the message was when it became ready. Each call that makes it ready at a new place adds
-- another row, so maintain finds every due message by key and may forget a row whose message it
-- does not find. A locked message is skipped and looked up again.
--
--   retry_later, fail_or_release, reap -> end_cancelled
--   cancel -> record_cancels
--   cancel, cancel_many -> cancel_unleased
--   reset, promote_group_waiting, push_delayed, ... -> record_expiry
--   get_message, get_history, read_result -> locate_messages
--   maintain_delivery -> expire -> pop_expired, find_unlocated
--
-- Writes blocked, claim, dead, delayed, expiry, group_waiting, leased, ready. Only reads finished,
-- lane, message, group_slot, queue.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalEndCancelled
    @queue_id int,
    @messages rowq.message_list readonly,
    @may_close bit
as
begin
-- purpose   End messages of a claim that were cancelled while a worker had them.
-- locks     as InternalFinish
    set nocount on;
    declare @archive_days int;
    if not exists (select 1 from @messages)
        return;

    select @archive_days = q.archive_days
    from rowq.queue q with (forceseek)
    where q.queue_id = @queue_id;
    exec rowq.InternalFinish @queue_id, @archive_days, @messages, N'cancelled', @may_close;
end
go

create or alter procedure rowq.InternalRecordCancels
    @queue_id int,
    @message_ids nvarchar(max),
    @noted_ids nvarchar(max) output
as
begin
-- purpose   Note of leased messages that they were cancelled; @noted_ids are those noted, null where there is none.
-- locks     claim rows, then rows of leased, passing over locked ones
    set nocount on;
    declare @ids table (message_id bigint not null primary key);
    declare @found table (
        claim_id   bigint not null,
        lane       smallint not null,
        seq        bigint not null,
        message_id bigint not null,
        primary key (claim_id, lane, seq, message_id)
    );
    declare @claims table (claim_id bigint not null primary key);
    declare @noted table (message_id bigint not null primary key);
    set @noted_ids = null;

    -- No key leads from a message to its claim, so read what is leased once for all. A batch that
    -- another session is taking, or ending, is locked, and so passed over.
    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    insert into @found (claim_id, lane, seq, message_id)
    select l.claim_id, l.lane, l.seq, l.message_id
    from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
    inner join @ids j on j.message_id = l.message_id
    where l.queue_id = @queue_id
    option (hash join, force order, maxdop 1, keepfixed plan);
    if @@rowcount = 0
        return;

    -- Whoever takes messages out of a claim locks its row first. So behind that lock nobody else
    -- changes rows of leased; one that a reader keeps locked is passed over, too.
    update c
    set has_cancels = 1
    output inserted.claim_id into @claims (claim_id)
    from (select distinct f.claim_id from @found f) j
    inner join rowq.claim c with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on c.queue_id = @queue_id
       and c.claim_id = j.claim_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    update l
    set is_cancelled = 1
    output inserted.message_id into @noted (message_id)
    from @claims c
    inner join @found f on f.claim_id = c.claim_id
    inner join rowq.leased l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on l.queue_id = @queue_id
       and l.claim_id = f.claim_id
       and l.lane = f.lane
       and l.seq = f.seq
       and l.message_id = f.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    select @noted_ids = N'[' + string_agg(cast(n.message_id as nvarchar(max)), N',') + N']'
    from @noted n;
end
go

create or alter procedure rowq.InternalCancelUnleased
    @queue_id int,
    @archive_days int,
    @message_ids nvarchar(max),
    @owns_transaction bit,
    @cancelled_ids nvarchar(max) output
as
begin
-- purpose   Cancel those messages that no worker holds; @cancelled_ids are their ids, null where there is none.
-- locks     blocked, delayed, dead and ready rows, passing over locked ones; message rows; then a
--           slot of each group and group_waiting rows, tried; then as InternalFinish
    set nocount on;
    declare @may_close bit;
    declare @count int = 0;
    declare @locked int;
    declare @ids table (message_id bigint not null primary key);
    declare @held table (message_id bigint not null primary key);
    declare @waiting table (
        message_id bigint not null primary key,
        group_key  varbinary(802) not null
    );
    declare @groups table (
        group_key    varbinary(802) not null primary key,
        is_exclusive bit null
    );
    declare @ready table (
        lane       smallint not null,
        seq        bigint not null,
        message_id bigint not null,
        primary key (lane, seq, message_id)
    );
    declare @taken rowq.message_list;
    set @cancelled_ids = null;

    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    set @may_close = @owns_transaction;
    -- A message that waits for others goes to each of the other places from there, so look for it
    -- first.
    delete b
    output deleted.message_id, deleted.lane, 0, 0, 1
    into @taken (message_id, lane, place, attempt, is_without_slot)
    from @ids j
    inner join rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on b.queue_id = @queue_id
       and b.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete d
    output deleted.message_id, deleted.lane, 0, deleted.attempt,
           iif(deleted.holds_slot = 1, 0, 1)
    into @taken (message_id, lane, place, attempt, is_without_slot)
    from @ids j
    inner join rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
        on d.queue_id = @queue_id
       and d.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- Find a delayed message by message.due_at, which is its place in delayed.
    delete d
    output deleted.message_id, deleted.lane, 0, deleted.attempt,
           iif(deleted.group_key is null, 0, 1)
    into @taken (message_id, lane, place, attempt, is_without_slot)
    from @ids j
    inner join rowq.message m
        with (rowlock, readpast, readcommittedlock, forceseek (message_pk (queue_id, message_id)))
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
    inner join rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        on d.queue_id = @queue_id
       and d.due_at = m.due_at
       and d.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- A message that was never given back is in the tail lane of its priority, where its seq is the
    -- moment of its enqueued_at. The others that have a body are looked for among all ready
    -- messages.
    insert into @ready (lane, seq, message_id)
    select r.lane, r.seq, r.message_id
    from @ids j
    inner join rowq.message m
        with (rowlock, readpast, readcommittedlock, forceseek (message_pk (queue_id, message_id)))
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
    inner join rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        on r.queue_id = @queue_id
       and r.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
       and r.seq = datediff_big(microsecond, '19700101', m.enqueued_at)
       and r.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete j
    from @ids j
    where exists (select 1 from @taken t where t.message_id = j.message_id)
       or exists (select 1 from @ready r where r.message_id = j.message_id);
    delete j
    from @ids j
    where not exists (
        select 1
        from rowq.message m
            with (
                rowlock, readpast, readcommittedlock, forceseek (message_pk (queue_id, message_id))
            )
        where m.queue_id = @queue_id
          and m.message_id = j.message_id
    )
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- A message goes from its group to the ready ones, so look for it there first. What is in a
    -- group is taken out below.
    if exists (select 1 from @ids)
    begin
        insert into @waiting (message_id, group_key)
        select j.message_id, x.group_key
        from @ids j
        inner join rowq.message m
            with (
                rowlock, readpast, readcommittedlock, forceseek (message_pk (queue_id, message_id))
            )
            on m.queue_id = @queue_id
           and m.message_id = j.message_id
           and m.group_key is not null
        inner join rowq.group_waiting x
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (group_waiting_pk (queue_id, group_key, message_id))
            )
            on x.queue_id = @queue_id
           and x.group_key = convert(varbinary(802), m.group_key + N'.')
           and x.message_id = j.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
        set @count = @@rowcount;
        delete j
        from @ids j
        where exists (select 1 from @waiting w where w.message_id = j.message_id);
    end;

    while 1 = 1
    begin
        if exists (select 1 from @ids)
        begin
            -- No key leads from a message to its claim, so read what is leased once for all.
            insert into @held (message_id)
            select distinct l.message_id
            from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
            inner join @ids j on j.message_id = l.message_id
            where l.queue_id = @queue_id
            option (hash join, force order, maxdop 1, keepfixed plan);
            delete j
            from @ids j
            where exists (select 1 from @held h where h.message_id = j.message_id);
        end;
        if exists (select 1 from @ids)
            insert into @ready (lane, seq, message_id)
            select r.lane, r.seq, r.message_id
            from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
            inner join @ids j on j.message_id = r.message_id
            where r.queue_id = @queue_id
            option (hash join, force order, maxdop 1, keepfixed plan);
        delete r
        output deleted.message_id, deleted.lane, 0, deleted.attempt
        into @taken (message_id, lane, place, attempt)
        from @ready j
        inner join rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
            on r.queue_id = @queue_id
           and r.lane = j.lane
           and r.seq = j.seq
           and r.message_id = j.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @count = 0
            break;

        -- Lock what is to end before the slots of its groups. A producer that has just named one
        -- of the messages, and then enters a group, goes the same way. With an archive the end
        -- locks no message.
        if @archive_days = 0
            select @locked = count(m.message_id)
            from (
                select t.message_id from @taken t
                union all
                select w.message_id from @waiting w
            ) j
            inner join rowq.message m
                with (rowlock, xlock, forceseek (message_pk (queue_id, message_id)))
                on m.queue_id = @queue_id
               and m.message_id = j.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);

        -- Before a message is taken out of its group, hold a slot, so that nobody passes over it
        -- meanwhile. A transaction of its own locks that exclusively where it can, because below it
        -- may have to give back the slot of another message. A group of which no slot can be had
        -- is left alone, and its message counts as leased.
        insert into @groups (group_key)
        select distinct w.group_key from @waiting w;
        if @owns_transaction = 1
            update g
            set is_exclusive = 1
            from @groups g
            cross apply (
                select top (1) t.slot_no
                from rowq.group_slot t
                    with (
                        rowlock, xlock, readpast, readcommittedlock,
                        forceseek (group_slot_pk (queue_id, group_key))
                    )
                where t.queue_id = @queue_id
                  and t.group_key = g.group_key
                order by t.slot_no
            ) t
            option (loop join, force order, maxdop 1, keepfixed plan);
        update g
        set is_exclusive = 0
        from @groups g
        cross apply (
            select top (1) t.slot_no
            from rowq.group_slot t
                with (
                    rowlock, updlock, readpast, readcommittedlock,
                    forceseek (group_slot_pk (queue_id, group_key))
                )
            where t.queue_id = @queue_id
              and t.group_key = g.group_key
            order by t.slot_no
        ) t
        where g.is_exclusive is null
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @@rowcount > 0
            set @may_close = 0;
        delete x
        output deleted.message_id, deleted.lane, 0, 0, 1
        into @taken (message_id, lane, place, attempt, is_without_slot)
        from @waiting w
        inner join @groups g
            on g.group_key = w.group_key
           and g.is_exclusive is not null
        inner join rowq.group_waiting x with (rowlock, readpast, readcommittedlock, forceseek)
            on x.queue_id = @queue_id
           and x.group_key = w.group_key
           and x.message_id = w.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);

        -- Look once more for those that have left their group since the look above.
        insert into @ids (message_id)
        select w.message_id
        from @waiting w
        inner join @groups g
            on g.group_key = w.group_key
           and g.is_exclusive is not null
        where not exists (select 1 from @taken t where t.message_id = w.message_id);
        if @@rowcount = 0
            break;
        delete from @ready;
        set @count = 0;
    end;

    if not exists (select 1 from @taken)
        return;
    exec rowq.InternalFinish @queue_id, @archive_days, @taken, N'cancelled', @may_close;
    select @cancelled_ids = N'[' + string_agg(cast(t.message_id as nvarchar(max)), N',') + N']'
    from @taken t;
end
go

create or alter procedure rowq.InternalRecordExpiry
    @queue_id int,
    @messages rowq.message_list readonly,
    @is_ready bit = 0
as
begin
-- purpose   Let maintain look again for those of the messages that expire. With @is_ready they are ready at their lane and place.
-- locks     new expiry rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @has_expiry bit = 0;

    -- maintain opens lane -6 before it forgets the first note of a queue. So a queue has no message
    -- that expires where there is no note, and after that look the lane is still closed.
    select @has_expiry = case
               when l.is_open = 1 then 1
               when e.message_id is not null then 1
               else a.is_open
           end
    from rowq.lane l with (readuncommitted, forceseek)
    outer apply (
        select top (1) x.message_id
        from rowq.expiry x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.queue_id = @queue_id
          and l.is_open = 0
    ) e
    inner join rowq.lane a with (readuncommitted, forceseek)
        on a.queue_id = @queue_id
       and a.lane = -6 /* expiry */
    where l.queue_id = @queue_id
      and l.lane = -6 /* expiry */
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @has_expiry = 0
        return;

    insert into rowq.expiry with (rowlock) (queue_id, expires_at, expiry_id, message_id, lane, seq)
    select @queue_id,
           case
               when m.expires_at > dateadd(day, 1, @now) then dateadd(day, 1, @now)
               when m.expires_at > @now then m.expires_at
               else @now
           end,
           next value for rowq.message_seq, j.message_id,
           iif(@is_ready = 1, j.lane, null), iif(@is_ready = 1, j.place, null)
    from @messages j
    inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
    where m.expires_at is not null
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalLocateMessages
    @queue_id int,
    @message_id bigint,
    @enqueued_at datetime2(6),
    @group_key nvarchar(400),
    @due_at datetime2(6) output,
    @state nvarchar(20) output,
    @lane smallint output,
    @attempt smallint output,
    @claim_id bigint output,
    @worker_name nvarchar(400) output,
    @lease_until datetime2(6) output,
    @finished_at datetime2(6) output,
    @waits_for bigint output,
    @progress nvarchar(4000) output,
    @leased_at datetime2(6) = null output
as
begin
-- purpose   Find where a message is that still has a body; @due_at is passed in as its last place in delayed.
-- locks     rows, shared while they are read, passing over locked ones
    set nocount on;
    declare @was_due_at datetime2(6) = @due_at;
    declare @group_bytes varbinary(802) = convert(varbinary(802), @group_key + N'.');
    set @due_at = null;
    set @state = null;

    -- A message that waits for others goes to each of the other places from there, so look for it
    -- first.
    select @state = N'blocked', @lane = b.lane, @attempt = 0, @due_at = b.due_at,
           @waits_for = b.predecessor_id
    from rowq.blocked b with (rowlock, readpast, readcommittedlock, forceseek)
    where b.queue_id = @queue_id
      and b.message_id = @message_id;

    if @state is null
        select @state = N'delayed', @lane = d.lane, @attempt = d.attempt, @due_at = d.due_at
        from rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
          and d.due_at = @was_due_at
          and d.message_id = @message_id;

    if @state is null
        select @state = N'dead', @lane = d.lane, @attempt = d.attempt, @finished_at = d.died_at
        from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
          and d.message_id = @message_id;

    if @state is null and @group_key is not null
    begin
        select @state = N'blocked', @lane = x.lane, @attempt = 0
        from rowq.group_waiting x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.queue_id = @queue_id
          and x.group_key = @group_bytes
          and x.message_id = @message_id;
        if @state = N'blocked'
            select top (1) @waits_for = x.message_id
            from rowq.group_waiting x with (rowlock, readpast, readcommittedlock, forceseek)
            where x.queue_id = @queue_id
              and x.group_key = @group_bytes
              and x.message_id < @message_id
            order by x.message_id desc
            option (maxdop 1, keepfixed plan);
    end;

    if @state is null
        select top (1) @state = N'leased', @lane = l.lane, @attempt = l.attempt,
               @claim_id = c.claim_id, @worker_name = c.worker_name, @lease_until = c.lease_until,
               @progress = c.progress, @leased_at = c.leased_at
        from rowq.leased l with (rowlock, readpast, readcommittedlock, forceseek)
        inner join rowq.claim c
            with (rowlock, readpast, readcommittedlock, forceseek (claim_pk (queue_id, claim_id)))
            on c.queue_id = @queue_id
           and c.claim_id = l.claim_id
        where l.queue_id = @queue_id
          and l.message_id = @message_id
        option (loop join, force order, maxdop 1, keepfixed plan);

    if @state is null
        select top (1) @state = f.state, @lane = f.lane, @attempt = f.attempt,
               @finished_at = f.finished_at
        from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
        where f.queue_id = @queue_id
          and f.message_id = @message_id
        option (maxdop 1, keepfixed plan);

    -- A message that was never given back is in the tail lane of its priority, where its seq is the
    -- moment of its enqueued_at.
    if @state is null
        select top (1) @state = N'ready', @lane = r.lane, @attempt = r.attempt
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.queue_id = @queue_id
          and r.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
          and r.seq = datediff_big(microsecond, '19700101', @enqueued_at)
          and r.message_id = @message_id
        option (maxdop 1, keepfixed plan);

    if @state is null
        select top (1) @state = N'ready', @lane = r.lane, @attempt = r.attempt
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.queue_id = @queue_id
          and r.message_id = @message_id
        option (maxdop 1, keepfixed plan);

    if @state is null
        -- Another session is moving the message, or has moved it between these looks, so it is in
        -- that session's hands: report it as leased.
        set @state = N'leased';
end
go

create or alter procedure rowq.InternalExpire
    @queue_id int,
    @archive_days int,
    @limit int,
    @expired int output
as
begin
-- purpose   Withdraw messages whose time has come, until @limit is passed; return how many there were. Call it in a transaction of rowq's own.
-- locks     as InternalPopExpired; expiry rows, passing over locked ones
    set nocount on;
    -- In milliseconds, that of InternalRescanFloors.
    declare @slow_scan int = 20;
    declare @step_size int = iif(@limit < 1000, @limit, 1000);
    declare @most_seen int = 10 * @limit;
    declare @started datetime2(6) = sysutcdatetime();
    declare @now datetime2(6) = @started;
    declare @floor bigint;
    declare @since datetime2(6);
    declare @after bigint = 0;
    declare @count int;
    declare @seen int = 0;
    declare @popped_ids nvarchar(max);
    declare @unlocated_ids nvarchar(max);
    declare @notes table (
        expires_at datetime2(6) not null,
        expiry_id  bigint not null,
        message_id bigint not null,
        lane       smallint null,
        seq        bigint null,
        primary key (expires_at, expiry_id)
    );
    declare @done table (message_id bigint not null primary key);
    declare @later table (
        expires_at datetime2(6) not null,
        expiry_id  bigint not null,
        message_id bigint not null,
        later_at   datetime2(6) not null,
        primary key (expires_at, expiry_id)
    );
    declare @kept table (
        expires_at datetime2(6) not null,
        expiry_id  bigint not null,
        primary key (expires_at, expiry_id)
    );
    declare @due rowq.message_list;
    declare @rest rowq.message_list;
    set @expired = 0;

    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -6 /* expiry */;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    while @seen < @most_seen and @expired < @limit
    begin
        insert into @notes (expires_at, expiry_id, message_id, lane, seq)
        select top (@step_size) e.expires_at, e.expiry_id, e.message_id, e.lane, e.seq
        from rowq.expiry e with (rowlock, readpast, readcommittedlock, forceseek)
        where e.queue_id = @queue_id
          and e.expires_at >= @since
          and e.expires_at <= @now
          and (e.expires_at > @since or e.expiry_id > @after)
        order by e.expires_at, e.expiry_id
        option (maxdop 1, keepfixed plan);
        set @count = @@rowcount;
        if @count = 0
            break;
        set @seen += @count;

        -- Put the newest note of a message that expires later off, for a day at most.
        insert into @later (expires_at, expiry_id, message_id, later_at)
        select h.expires_at, h.expiry_id, h.message_id,
               iif(m.expires_at > dateadd(day, 1, @now), dateadd(day, 1, @now), m.expires_at)
        from (
            select n.expires_at, n.expiry_id, n.message_id,
                   row_number() over (partition by n.message_id order by n.expiry_id desc) as turn
            from @notes n
        ) h
        inner join rowq.message m
            with (
                rowlock, readpast, readcommittedlock, forceseek (message_pk (queue_id, message_id))
            )
            on m.queue_id = @queue_id
           and m.message_id = h.message_id
        where h.turn = 1
          and m.expires_at > @now
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @@rowcount > 0
        begin
            update e
            set expires_at = l.later_at
            from @later l
            inner join rowq.expiry e with (rowlock, xlock, readpast, readcommittedlock, forceseek)
                on e.queue_id = @queue_id
               and e.expires_at = l.expires_at
               and e.expiry_id = l.expiry_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            insert into @done (message_id)
            select l.message_id from @later l;
        end;

        -- Of several notes of a message the newest says where it is. No lane is -1.
        insert into @due (message_id, lane, place, attempt)
        select h.message_id, coalesce(h.lane, -1), coalesce(h.seq, 0), 0
        from (
            select n.message_id, n.lane, n.seq,
                   row_number() over (partition by n.message_id order by n.expiry_id desc) as turn
            from @notes n
        ) h
        where h.turn = 1
          and not exists (select 1 from @later l where l.message_id = h.message_id);
        exec rowq.InternalPopExpired @queue_id, @archive_days, @due, @popped_ids output;
        insert into @done (message_id)
        select cast(j.value as bigint) from openjson(@popped_ids) j;
        set @expired += @@rowcount;

        -- A message that is in no place has ended, is dead, or is held by a claim, and who gives it
        -- back adds a note. One that another session holds now is looked for again.
        insert into @rest (message_id, lane, place, attempt)
        select d.message_id, d.lane, d.place, d.attempt
        from @due d
        where not exists (select 1 from @done o where o.message_id = d.message_id);
        if @@rowcount > 0
        begin
            exec rowq.InternalFindUnlocated @queue_id, @rest, @unlocated_ids output;
            insert into @done (message_id)
            select cast(j.value as bigint) from openjson(@unlocated_ids) j;
        end;
        delete e
        from @notes n
        inner join @done o on o.message_id = n.message_id
        inner join rowq.expiry e with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on e.queue_id = @queue_id
           and e.expires_at = n.expires_at
           and e.expiry_id = n.expiry_id
        option (loop join, force order, maxdop 1, keepfixed plan);
        insert into @kept (expires_at, expiry_id)
        select n.expires_at, n.expiry_id
        from @notes n
        where not exists (select 1 from @done o where o.message_id = n.message_id);

        select top (1) @since = n.expires_at, @after = n.expiry_id
        from @notes n
        order by n.expires_at desc, n.expiry_id desc;
        delete from @notes;
        delete from @due;
        delete from @rest;
        delete from @done;
        delete from @later;
        if @count < @step_size
            break;
        -- Take the time anew, because what the end of a message has let go on has a note of a later
        -- moment.
        set @now = sysutcdatetime();
    end;

    -- Put what is kept behind the others that are due, once it could stand in front of them: else a
    -- session that is idle in its transaction must not make every look write.
    if (
            @seen >= @most_seen
            or datediff_big(millisecond, @started, sysutcdatetime()) > @slow_scan
        )
        and exists (select 1 from @kept)
        update e
        set expires_at = @now
        from @kept k
        inner join rowq.expiry e with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on e.queue_id = @queue_id
           and e.expires_at = k.expires_at
           and e.expiry_id = k.expiry_id
        option (loop join, force order, maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalPopExpired
    @queue_id int,
    @archive_days int,
    @due rowq.message_list readonly,
    @popped_ids nvarchar(max) output
as
begin
-- purpose   End those messages that nobody holds, which are at lane and place where they are ready; @popped_ids are their ids, null where there is none. Call it in a transaction of rowq's own.
-- locks     message rows; blocked, delayed, group_waiting and ready rows, and a slot of each group,
--           all of them tried only; then as InternalFinish
    set nocount on;
    declare @may_close bit = 1;
    declare @found table (
        message_id bigint not null primary key,
        lane       smallint not null,
        seq        bigint not null
    );
    declare @held table (
        message_id bigint not null primary key,
        lane       smallint not null,
        seq        bigint not null,
        due_at     datetime2(6) null,
        group_key  varbinary(802) null
    );
    declare @groups table (
        group_key    varbinary(802) not null primary key,
        is_exclusive bit null
    );
    declare @taken rowq.message_list;
    set @popped_ids = null;

    -- Look with locks that do not last: most of the others are leased, and whoever reads their
    -- bodies must not wait for this transaction. top keeps each look an apply by key.
    insert into @found (message_id, lane, seq)
    select j.message_id, j.lane, j.place
    from @due j
    inner join rowq.message m
        with (rowlock, readpast, readcommittedlock, forceseek (message_pk (queue_id, message_id)))
        on m.queue_id = @queue_id
       and m.message_id = j.message_id
    outer apply (
        select top (1) x.message_id
        from rowq.ready x
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (ready_pk (queue_id, lane, seq, message_id))
            )
        where x.queue_id = @queue_id
          and x.lane = j.lane
          and x.seq = j.place
          and x.message_id = j.message_id
    ) r
    outer apply (
        select top (1) x.message_id
        from rowq.delayed x
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (delayed_pk (queue_id, due_at, message_id))
            )
        where x.queue_id = @queue_id
          and x.due_at = m.due_at
          and x.message_id = j.message_id
    ) d
    outer apply (
        select top (1) x.message_id
        from rowq.blocked x
            with (
                rowlock, readpast, readcommittedlock, forceseek (blocked_pk (queue_id, message_id))
            )
        where x.queue_id = @queue_id
          and x.message_id = j.message_id
    ) b
    outer apply (
        select top (1) x.message_id
        from rowq.group_waiting x
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (group_waiting_pk (queue_id, group_key, message_id))
            )
        where x.queue_id = @queue_id
          and x.group_key = convert(varbinary(802), m.group_key + N'.')
          and x.message_id = j.message_id
    ) g
    where coalesce(r.message_id, d.message_id, b.message_id, g.message_id) is not null
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @@rowcount = 0
        return;

    -- Leave alone what a producer has just named as a predecessor.
    insert into @held (message_id, lane, seq, due_at, group_key)
    select f.message_id, f.lane, f.seq, m.due_at, convert(varbinary(802), m.group_key + N'.')
    from @found f
    inner join rowq.message m
        with (
            rowlock, xlock, readpast, readcommittedlock,
            forceseek (message_pk (queue_id, message_id))
        )
        on m.queue_id = @queue_id
       and m.message_id = f.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    delete b
    output deleted.message_id, deleted.lane, 0, 0, 1
    into @taken (message_id, lane, place, attempt, is_without_slot)
    from @held h
    inner join rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on b.queue_id = @queue_id
       and b.message_id = h.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete d
    output deleted.message_id, deleted.lane, 0, deleted.attempt,
           iif(deleted.group_key is null, 0, 1)
    into @taken (message_id, lane, place, attempt, is_without_slot)
    from @held h
    inner join rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on d.queue_id = @queue_id
       and d.due_at = h.due_at
       and d.message_id = h.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete r
    output deleted.message_id, deleted.lane, 0, deleted.attempt
    into @taken (message_id, lane, place, attempt)
    from @held h
    inner join rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on r.queue_id = @queue_id
       and r.lane = h.lane
       and r.seq = h.seq
       and r.message_id = h.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- Before a message is taken out of its group, hold a slot, so that nobody passes over it
    -- meanwhile: exclusively where that can be had, because below the group may have to be closed,
    -- or joined by what has waited for a message. A group of which no slot can be had is left to
    -- the next maintain.
    insert into @groups (group_key)
    select distinct h.group_key
    from @held h
    inner join rowq.group_waiting x
        with (
            rowlock, readpast, readcommittedlock,
            forceseek (group_waiting_pk (queue_id, group_key, message_id))
        )
        on x.queue_id = @queue_id
       and x.group_key = h.group_key
       and x.message_id = h.message_id
    where h.group_key is not null
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @@rowcount > 0
    begin
        update g
        set is_exclusive = 1
        from @groups g
        cross apply (
            select top (1) t.slot_no
            from rowq.group_slot t
                with (
                    rowlock, xlock, readpast, readcommittedlock,
                    forceseek (group_slot_pk (queue_id, group_key))
                )
            where t.queue_id = @queue_id
              and t.group_key = g.group_key
            order by t.slot_no
        ) t
        option (loop join, force order, maxdop 1, keepfixed plan);
        update g
        set is_exclusive = 0
        from @groups g
        cross apply (
            select top (1) t.slot_no
            from rowq.group_slot t
                with (
                    rowlock, updlock, readpast, readcommittedlock,
                    forceseek (group_slot_pk (queue_id, group_key))
                )
            where t.queue_id = @queue_id
              and t.group_key = g.group_key
            order by t.slot_no
        ) t
        where g.is_exclusive is null
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @@rowcount > 0
            set @may_close = 0;
        delete x
        output deleted.message_id, deleted.lane, 0, 0, 1
        into @taken (message_id, lane, place, attempt, is_without_slot)
        from @held h
        inner join @groups g
            on g.group_key = h.group_key
           and g.is_exclusive is not null
        inner join rowq.group_waiting x
            with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on x.queue_id = @queue_id
           and x.group_key = h.group_key
           and x.message_id = h.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
    end;

    if not exists (select 1 from @taken)
        return;
    exec rowq.InternalFinish @queue_id, @archive_days, @taken, N'expired', @may_close;
    select @popped_ids = N'[' + string_agg(cast(t.message_id as nvarchar(max)), N',') + N']'
    from @taken t;
end
go

create or alter procedure rowq.InternalFindUnlocated
    @queue_id int,
    @messages rowq.message_list readonly,
    @unlocated_ids nvarchar(max) output
as
begin
-- purpose   Return which of the messages are neither ready, at lane and place, nor delayed, blocked or in their groups, and are not on the way; null where there is none.
-- locks     rows, shared while they are read, tried only
-- differs   elsewhere one statement with one snapshot looks in all places
    set nocount on;
    -- To learn of each locked message that it is one takes errors, so leave the rest to the next
    -- call after so many.
    declare @most_locked int = 20;
    declare @most_at_once int = 10000;
    declare @size int = @most_at_once;
    declare @last_id bigint = 0;
    declare @next_id bigint;
    declare @count int;
    declare @locked int = 0;
    declare @some table (
        message_id bigint not null primary key,
        lane       smallint not null,
        seq        bigint not null,
        due_at     datetime2(6) null,
        group_key  varbinary(802) null
    );
    declare @unlocated table (message_id bigint not null primary key);
    set @unlocated_ids = null;

    -- A row that another session has locked is error 1222 (nowait): it must not look like one that
    -- is not there. Without xact_abort that error ends no transaction. The option is off only here,
    -- where no table is written, and where nothing waits, so that no client's timeout comes.
    set xact_abort off;
    while @locked < @most_locked
    begin
        delete from @some;
        insert into @some (message_id, lane, seq)
        select top (@size) j.message_id, j.lane, j.place
        from @messages j
        where j.message_id > @last_id
        order by j.message_id;
        set @count = @@rowcount;
        if @count = 0
            break;
        select @next_id = max(s.message_id) from @some s;
        begin try
            -- Look in the order in which a message moves that has no new note for it: from the
            -- blocked to the delayed ones and into its group. So it cannot slip through.
            update s
            set due_at    = m.due_at,
                group_key = convert(varbinary(802), m.group_key + N'.')
            from @some s
            inner join rowq.message m
                with (
                    rowlock, readcommittedlock, nowait,
                    forceseek (message_pk (queue_id, message_id))
                )
                on m.queue_id = @queue_id
               and m.message_id = s.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete s
            from @some s
            inner join rowq.blocked b
                with (
                    rowlock, readcommittedlock, nowait,
                    forceseek (blocked_pk (queue_id, message_id))
                )
                on b.queue_id = @queue_id
               and b.message_id = s.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete s
            from @some s
            inner join rowq.delayed d
                with (
                    rowlock, readcommittedlock, nowait,
                    forceseek (delayed_pk (queue_id, due_at, message_id))
                )
                on d.queue_id = @queue_id
               and d.due_at = s.due_at
               and d.message_id = s.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete s
            from @some s
            inner join rowq.group_waiting g
                with (
                    rowlock, readcommittedlock, nowait,
                    forceseek (group_waiting_pk (queue_id, group_key, message_id))
                )
                on g.queue_id = @queue_id
               and g.group_key = s.group_key
               and g.message_id = s.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete s
            from @some s
            inner join rowq.ready r
                with (
                    rowlock, readcommittedlock, nowait,
                    forceseek (ready_pk (queue_id, lane, seq, message_id))
                )
                on r.queue_id = @queue_id
               and r.lane = s.lane
               and r.seq = s.seq
               and r.message_id = s.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            insert into @unlocated (message_id)
            select s.message_id from @some s;
        end try
        begin catch
            if error_number() <> 1222
                throw;
            -- Ask for a quarter of them, and so on, to learn which of them it is.
            if @count > 1
            begin
                set @size = (@count + 3) / 4;
                continue;
            end;
            set @locked += 1;
        end catch;
        set @last_id = @next_id;
        set @size = iif(@size * 4 < @most_at_once, @size * 4, @most_at_once);
    end;
    select @unlocated_ids = N'[' + string_agg(cast(u.message_id as nvarchar(max)), N',') + N']'
    from @unlocated u;
end
go
