-- Cancel: cancelling by a caller, expiry, and finding a message.
--
-- A waiting message is deleted where it waits and ends as cancelled or expired. If a message is
-- leased, the cancel is recorded in its claim: the heartbeat returns it, and the call that returns
-- the message ends it. A message that expires has rows in expiry. Each call that makes it ready or
-- moves it adds a row with its position, so maintain finds due messages by key, and deletes a row
-- whose message it does not find. A locked message is skipped and retried.
--
-- alter_message locks the row where a message waits, then its message row; the message row first if
-- the message waits in its group, because it locks a slot then.
--
--   retry_later, fail_or_release, reap -> end_cancelled
--   cancel -> record_cancels
--   cancel, cancel_many -> cancel_unleased
--   alter_message -> lock_waiting, alter_waiting -> record_expiry
--   reset, promote_group_waiting, push_delayed, ... -> record_expiry
--   get_message, get_history, read_result -> locate_messages
--   explain_message -> locate_messages, explain_predecessor
--   explain_predecessor -> locate_messages
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
-- purpose   End messages of a claim that were cancelled while they were leased.
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
    @recorded_ids nvarchar(max) output
as
begin
-- purpose   Record a cancel of leased messages; return them in @recorded_ids, or null.
-- locks     claim rows, then rows of leased, skipping locked ones
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
    declare @recorded table (message_id bigint not null primary key);
    set @recorded_ids = null;

    -- No key leads from a message to its claim, so read the leased messages once for all. A batch
    -- that another session is leasing or finishing is locked, and is skipped.
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

    -- A session that removes messages from a claim locks its row first, so behind that lock no
    -- other session changes rows of leased. A row that a reader has locked is also skipped.
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
    output inserted.message_id into @recorded (message_id)
    from @claims c
    inner join @found f on f.claim_id = c.claim_id
    inner join rowq.leased l with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on l.queue_id = @queue_id
       and l.claim_id = f.claim_id
       and l.lane = f.lane
       and l.seq = f.seq
       and l.message_id = f.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    select @recorded_ids = N'[' + string_agg(cast(n.message_id as nvarchar(max)), N',') + N']'
    from @recorded n;
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
-- purpose   Cancel the messages that no worker holds; return their ids in @cancelled_ids, or null.
-- locks     blocked, delayed, dead and ready rows, skipping locked ones; message rows; then a slot
--           of each group and group_waiting rows, skipped if locked; then as InternalFinish
    set nocount on;
    declare @may_close bit, @count int = 0, @locked int;
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
    -- A blocked message moves from there to one of the other tables, so check blocked first.
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

    -- message.due_at is part of the key of delayed.
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

    -- A message that was never returned is in the tail lane of its priority, and its seq is its
    -- enqueued_at. The other messages are searched for in all of ready.
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

    -- A message moves from its group to ready, so check its group first. It is deleted below.
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
            -- No key leads from a message to its claim, so read the leased messages once for all.
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

        -- Lock the messages before the slots of their groups, as a producer does that names one as
        -- a predecessor and joins a group. With an archive, ending locks no message.
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

        -- Lock a slot before deleting a message from its group, so that no session overtakes it.
        -- rowq's own transaction locks it exclusively if it can, because it may have to delete
        -- another message's slot below. A group without an unlocked slot is skipped: its message
        -- counts as leased.
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

        -- Check again for messages that have left their group since the first check.
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

create or alter procedure rowq.InternalLockWaiting
    @queue_id int,
    @message_id bigint,
    @place nvarchar(20) output,
    @group_key varbinary(802) output,
    @lane smallint output,
    @attempt smallint output,
    @seq bigint output,
    @due_at datetime2(6) output
as
begin
-- purpose   Lock a message where it waits; @place is null if it is leased, locked or unknown.
-- locks     a blocked, delayed, dead or ready row, skipped if locked; if the message waits in its
--           group, the message row, waiting for it, a slot and the group_waiting row
-- @due_at is the message's key in delayed, @seq that in ready.
    set nocount on;
    declare @enqueued_at datetime2(6), @was_due_at datetime2(6), @slot_no smallint;
    set @place = null;
    set @group_key = null;
    set @lane = null;
    set @attempt = null;
    set @seq = null;
    set @due_at = null;

    select @enqueued_at = m.enqueued_at, @was_due_at = m.due_at,
           @group_key = convert(varbinary(802), m.group_key + N'.')
    from rowq.message m
        with (rowlock, readpast, readcommittedlock, forceseek (message_pk (queue_id, message_id)))
    where m.queue_id = @queue_id
      and m.message_id = @message_id;
    if @enqueued_at is null
        return;

    -- A blocked message moves from there to one of the other tables, so check blocked first.
    select @place = N'blocked', @lane = b.lane, @attempt = 0
    from rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where b.queue_id = @queue_id
      and b.message_id = @message_id;
    if @place is null
        select @place = N'dead', @lane = d.lane, @attempt = d.attempt
        from rowq.dead d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
          and d.message_id = @message_id;
    if @place is null and @was_due_at is not null
        select @place = N'delayed', @lane = d.lane, @attempt = d.attempt, @due_at = d.due_at
        from rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
          and d.due_at = @was_due_at
          and d.message_id = @message_id;

    -- A message moves from its group to ready, so check its group first. Lock the message before a
    -- slot, as a producer does, and a slot before the message in its group, so that no session
    -- overtakes it.
    if @place is null and @group_key is not null
        and exists (
            select 1
            from rowq.group_waiting x with (rowlock, readpast, readcommittedlock, forceseek)
            where x.queue_id = @queue_id
              and x.group_key = @group_key
              and x.message_id = @message_id
        )
    begin
        select @enqueued_at = m.enqueued_at
        from rowq.message m with (rowlock, xlock, forceseek (message_pk (queue_id, message_id)))
        where m.queue_id = @queue_id
          and m.message_id = @message_id;
        select top (1) @slot_no = t.slot_no
        from rowq.group_slot t
            with (
                rowlock, updlock, readpast, readcommittedlock,
                forceseek (group_slot_pk (queue_id, group_key))
            )
        where t.queue_id = @queue_id
          and t.group_key = @group_key
        order by t.slot_no
        option (maxdop 1, keepfixed plan);
        if @slot_no is null
            return;
        select @place = N'group_waiting', @lane = x.lane, @attempt = 0
        from rowq.group_waiting x with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where x.queue_id = @queue_id
          and x.group_key = @group_key
          and x.message_id = @message_id;
    end;

    -- A message that was never returned is in the tail lane of its priority, and its seq is its
    -- enqueued_at. Any other message is searched for in all of ready.
    if @place is null
    begin
        select top (1) @lane = r.lane, @seq = r.seq
        from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        where r.queue_id = @queue_id
          and r.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
          and r.seq = datediff_big(microsecond, '19700101', @enqueued_at)
          and r.message_id = @message_id
        option (maxdop 1, keepfixed plan);
        if @seq is null
            select top (1) @lane = r.lane, @seq = r.seq
            from rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
            where r.queue_id = @queue_id
              and r.message_id = @message_id
            option (maxdop 1, keepfixed plan);
        if @seq is not null
            select @place = N'ready', @attempt = r.attempt
            from rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where r.queue_id = @queue_id
              and r.lane = @lane
              and r.seq = @seq
              and r.message_id = @message_id;
    end;
end
go

create or alter procedure rowq.InternalAlterWaiting
    @queue_id int,
    @message_id bigint,
    @place nvarchar(20),
    @group_key varbinary(802),
    @lane smallint,
    @attempt smallint,
    @seq bigint,
    @was_due_at datetime2(6),
    @priority int,
    @now datetime2(6),
    @expires bit,
    @owns_transaction bit,
    @due_at datetime2(6) output
as
begin
-- purpose   Give a locked message a priority and a time, where not null; @due_at becomes its time.
-- locks     rows that the caller has locked; the message row; new rows; as
--           InternalReleaseGroupSlots
    set nocount on;
    declare @new_lane smallint = coalesce(@priority * 2 + 1, @lane), @is_delayed bit = 0,
        @joins bit = 0, @is_ready bit = 0, @has_time bit = iif(@due_at is null, 0, 1);
    declare @moved rowq.message_list;

    if @priority is not null
        exec rowq.InternalOpenLanes @queue_id, @new_lane;

    if @place = N'dead'
        update d
        set lane = @new_lane
        from rowq.dead d with (rowlock, forceseek)
        where d.queue_id = @queue_id
          and d.message_id = @message_id;
    else if @place = N'blocked'
    begin
        update b
        set lane   = @new_lane,
            due_at = case
                when @due_at is null then b.due_at
                when @due_at > @now then @due_at
            end
        from rowq.blocked b with (rowlock, forceseek)
        where b.queue_id = @queue_id
          and b.message_id = @message_id;
        select @due_at = b.due_at
        from rowq.blocked b with (rowlock, readcommittedlock, forceseek)
        where b.queue_id = @queue_id
          and b.message_id = @message_id;
    end;
    else if @place = N'delayed'
    begin
        select @joins = iif(d.group_key is null, 0, 1)
        from rowq.delayed d with (rowlock, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
          and d.due_at = @was_due_at
          and d.message_id = @message_id;
        delete d
        from rowq.delayed d with (rowlock, forceseek)
        where d.queue_id = @queue_id
          and d.due_at = @was_due_at
          and d.message_id = @message_id;
        set @is_delayed = 1;
        set @due_at = coalesce(@due_at, @was_due_at);
    end;
    else if @place = N'group_waiting' and @due_at > @now
    begin
        delete x
        from rowq.group_waiting x with (rowlock, forceseek)
        where x.queue_id = @queue_id
          and x.group_key = @group_key
          and x.message_id = @message_id;
        set @is_delayed = 1;
        set @joins = 1;
    end;
    else if @place = N'group_waiting'
    begin
        update x
        set lane = @new_lane
        from rowq.group_waiting x with (rowlock, forceseek)
        where x.queue_id = @queue_id
          and x.group_key = @group_key
          and x.message_id = @message_id;
        set @due_at = null;
    end;
    else if @due_at > @now
    begin
        -- A message that was leased before keeps its slot, as a retried one does. Any other leaves
        -- its group, and joins it again when it is due.
        delete r
        from rowq.ready r with (rowlock, forceseek)
        where r.queue_id = @queue_id
          and r.lane = @lane
          and r.seq = @seq
          and r.message_id = @message_id;
        set @is_delayed = 1;
        set @joins = iif(@attempt = 0 and @group_key is not null, 1, 0);
        set @new_lane = @new_lane / 2 * 2 + 1;
    end;
    else if @new_lane / 2 <> @lane / 2
    begin
        delete r
        from rowq.ready r with (rowlock, forceseek)
        where r.queue_id = @queue_id
          and r.lane = @lane
          and r.seq = @seq
          and r.message_id = @message_id;
        insert into @moved (message_id, lane, place, attempt)
        values (@message_id, @new_lane, 0, @attempt);
        exec rowq.InternalPushReady @queue_id, @moved;
        set @due_at = null;
        set @expires = 0;
    end;
    else
    begin
        set @due_at = null;
        set @new_lane = @lane;
        set @is_ready = 1;
    end;

    -- The time of a message that will be delayed is also in its message row.
    if @has_time = 1 and (@is_delayed = 1 or @place = N'blocked')
        update m
        set due_at = @due_at
        from rowq.message m with (rowlock, forceseek)
        where m.queue_id = @queue_id
          and m.message_id = @message_id;
    if @is_delayed = 1
        insert into rowq.delayed with (rowlock)
            (queue_id, due_at, message_id, lane, attempt, group_key)
        values (
            @queue_id, @due_at, @message_id, @new_lane, @attempt, iif(@joins = 1, @group_key, null)
        );
    if @expires = 1
    begin
        insert into @moved (message_id, lane, place, attempt)
        values (@message_id, @new_lane, coalesce(@seq, 0), @attempt);
        exec rowq.InternalRecordExpiry @queue_id, @moved, @is_ready;
        delete from @moved;
    end;
    if @place = N'ready' and @joins = 1
    begin
        insert into @moved (message_id, lane, place, attempt, group_key)
        values (@message_id, 0, 0, 0, @group_key);
        exec rowq.InternalReleaseGroupSlots @queue_id, @moved, @may_close = @owns_transaction;
    end;
end
go

create or alter procedure rowq.InternalRecordExpiry
    @queue_id int,
    @messages rowq.message_list readonly,
    @is_ready bit = 0
as
begin
-- purpose   Add a row of expiry for each of these messages that expires.
-- locks     new expiry rows
-- With @is_ready they are ready at their lane and place.
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime(), @has_expiry bit = 0;

    -- maintain opens lane -6 before it deletes the first expiry row of a queue. So if there is no
    -- row, and the lane is closed after that check, no message of the queue expires.
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
-- purpose   Find a message that still has a body.
-- locks     rows, shared while they are read, skipping locked ones
-- @due_at is passed in as the message's due_at, its key in delayed.
    set nocount on;
    declare @was_due_at datetime2(6) = @due_at,
        @group_bytes varbinary(802) = convert(varbinary(802), @group_key + N'.');
    set @due_at = null;
    set @state = null;

    -- A blocked message moves from there to one of the other tables, so check blocked first.
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

    -- A message that was never returned is in the tail lane of its priority, and its seq is its
    -- enqueued_at.
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
        -- Another session is moving the message, or has moved it between these reads, so it holds
        -- the message: report it as leased.
        set @state = N'leased';
end
go

create or alter procedure rowq.InternalExplainPredecessor
    @queue_id int,
    @message_id bigint,
    @state nvarchar(20) output,
    @clears_at datetime2(6) output,
    @claim_id bigint output,
    @worker_name nvarchar(400) output
as
begin
-- purpose   Return the state of a predecessor, null if it has ended, and when and by which worker it changes.
-- locks     rows, shared while they are read, skipping locked ones
    set nocount on;
    declare @enqueued_at datetime2(6), @due_at datetime2(6), @lease_until datetime2(6),
        @finished_at datetime2(6), @lane smallint, @attempt smallint, @group_key nvarchar(400),
        @waits_for bigint, @progress nvarchar(4000);
    set @state = null;
    set @claim_id = null;
    set @worker_name = null;

    select @enqueued_at = m.enqueued_at, @due_at = m.due_at, @group_key = m.group_key
    from rowq.message m with (rowlock, readpast, readcommittedlock, forceseek)
    where m.queue_id = @queue_id
      and m.message_id = @message_id;
    if @enqueued_at is not null
        exec rowq.InternalLocateMessages
            @queue_id, @message_id, @enqueued_at, @group_key, @due_at output, @state output,
            @lane output, @attempt output, @claim_id output, @worker_name output,
            @lease_until output, @finished_at output, @waits_for output, @progress output;
    if @state in (N'completed', N'cancelled', N'expired')
        set @state = null;
    if @state is not null
        set @clears_at = coalesce(@lease_until, @due_at);
end
go

create or alter procedure rowq.InternalExpire
    @queue_id int,
    @archive_days int,
    @limit int,
    @expired int output
as
begin
-- purpose   Expire due messages, up to about @limit; return how many expired.
-- locks     as InternalPopExpired; expiry rows, skipping locked ones
-- Call it in rowq's own transaction.
    set nocount on;
    -- In milliseconds, as in InternalRescanFloors.
    declare @slow_scan int = 20, @step_size int = iif(@limit < 1000, @limit, 1000),
        @most_seen int = 10 * @limit, @started datetime2(6) = sysutcdatetime();
    declare @now datetime2(6) = @started, @floor bigint, @since datetime2(6), @after bigint = 0,
        @count int, @seen int = 0, @popped_ids nvarchar(max), @unlocated_ids nvarchar(max);
    declare @items table (
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
        insert into @items (expires_at, expiry_id, message_id, lane, seq)
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

        -- Postpone the newest row of a message that expires later, by a day at most.
        insert into @later (expires_at, expiry_id, message_id, later_at)
        select h.expires_at, h.expiry_id, h.message_id,
               iif(m.expires_at > dateadd(day, 1, @now), dateadd(day, 1, @now), m.expires_at)
        from (
            select n.expires_at, n.expiry_id, n.message_id,
                   row_number() over (partition by n.message_id order by n.expiry_id desc) as turn
            from @items n
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
        -- Delete the rows of a message that does not expire any more.
        insert into @done (message_id)
        select distinct n.message_id
        from @items n
        inner join rowq.message m
            with (
                rowlock, readpast, readcommittedlock, forceseek (message_pk (queue_id, message_id))
            )
            on m.queue_id = @queue_id
           and m.message_id = n.message_id
        where m.expires_at is null
        option (loop join, force order, maxdop 1, keepfixed plan);

        -- The newest of a message's rows has its position. No lane is -1.
        insert into @due (message_id, lane, place, attempt)
        select h.message_id, coalesce(h.lane, -1), coalesce(h.seq, 0), 0
        from (
            select n.message_id, n.lane, n.seq,
                   row_number() over (partition by n.message_id order by n.expiry_id desc) as turn
            from @items n
        ) h
        where h.turn = 1
          and not exists (select 1 from @done o where o.message_id = h.message_id);
        exec rowq.InternalPopExpired @queue_id, @archive_days, @due, @popped_ids output;
        insert into @done (message_id)
        select cast(j.value as bigint) from openjson(@popped_ids) j;
        set @expired += @@rowcount;

        -- A message that is in none of these tables has ended, is dead, or is leased: the call that
        -- returns it adds a row. Keep the row of a locked message.
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
        from @items n
        inner join @done o on o.message_id = n.message_id
        inner join rowq.expiry e with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on e.queue_id = @queue_id
           and e.expires_at = n.expires_at
           and e.expiry_id = n.expiry_id
        option (loop join, force order, maxdop 1, keepfixed plan);
        insert into @kept (expires_at, expiry_id)
        select n.expires_at, n.expiry_id
        from @items n
        where not exists (select 1 from @done o where o.message_id = n.message_id);

        select top (1) @since = n.expires_at, @after = n.expiry_id
        from @items n
        order by n.expires_at desc, n.expiry_id desc;
        delete from @items;
        delete from @due;
        delete from @rest;
        delete from @done;
        delete from @later;
        if @count < @step_size
            break;
        -- Read the time again: messages that were resumed here have rows with later times.
        set @now = sysutcdatetime();
    end;

    -- Move the rows that are kept behind the other due rows if they could block them. Otherwise
    -- leave them: an idle transaction must not cause writes.
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
-- purpose   Expire unlocked messages; return their ids in @popped_ids, or null.
-- locks     message rows; blocked, delayed, group_waiting and ready rows, and a slot of each group,
--           all skipped if locked; then as InternalFinish
-- Ready messages are at lane and place. Call it in rowq's own transaction.
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

    -- Read with short locks: most of the others are leased, and readers of their bodies must not
    -- wait for this transaction. top makes each lookup an apply by key.
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

    -- Skip a message that a producer has just named as a predecessor, or to which alter_message has
    -- given another time since the first read.
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
    where m.expires_at <= sysutcdatetime()
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

    -- Lock a slot before deleting a message from its group, so that no session overtakes it:
    -- exclusively if possible, because below the group's last slot may be deleted, or a successor
    -- may join it. A group without an unlocked slot is left to the next maintain.
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
-- purpose   Return the messages that are not ready, delayed, blocked or in a group, or null.
-- locks     rows, shared while they are read, never waiting
-- differs   elsewhere one statement with one snapshot checks all tables
-- Ready messages are at lane and place. A locked row counts as found.
    set nocount on;
    -- Each locked message costs an error. Stop after this many, and leave the rest to the next
    -- call.
    declare @most_locked int = 20, @most_at_once int = 10000;
    declare @size int = @most_at_once, @last_id bigint = 0, @next_id bigint, @count int,
        @locked int = 0;
    declare @some table (
        message_id bigint not null primary key,
        lane       smallint not null,
        seq        bigint not null,
        due_at     datetime2(6) null,
        group_key  varbinary(802) null
    );
    declare @unlocated table (message_id bigint not null primary key);
    set @unlocated_ids = null;

    -- As in InternalAwaitPredecessor: a locked row raises error 1222, which must not end the
    -- transaction.
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
            -- Check in the order in which a message moves without a new row: from blocked to
            -- delayed and into its group. So it cannot slip through.
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
            -- Read a quarter of them, and so on, to find the locked one.
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
