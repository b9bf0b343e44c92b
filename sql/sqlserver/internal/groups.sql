-- Groups: at most group_limit messages of one group_key in work.
--
-- A message needs a slot, a row of group_slot, to be ready, leased or delayed for a retry. A
-- message without a slot waits in group_waiting, which dequeue does not read. The call that ends a
-- message passes its slot to the group's next message, or deletes it, in the same transaction. So
-- slots cannot leak, and groups take turns. A producer that finds the group full locks its slots
-- until its transaction ends, so that the last slot is not deleted before that. No worker waits
-- for a producer: if a slot cannot be passed on now, a row of deferred leaves it to maintain.
--
-- A call in the caller's transaction adds no group's first slot and deletes no slot, so that no
-- producer waits for a worker's open transaction.
--
--   alter_queue -> defer_group_checks
--   enqueue, store -> take_group_slot
--   reset, store_batch -> join_groups -> take_group_slot
--   release_links -> release_group_slots -> pass_group_slot
--   run_deferred -> pass_group_slot
--   promote_group_waiting, try_unblock -> try_join_group -> try_take_group_slot
--   run_deferred -> add_group_slots -> try_take_group_slot, release_group_slots
--
-- Writes group_waiting, group_slot, ready, deferred. Only reads queue.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalDeferGroupChecks
    @queue_id int
as
begin
-- purpose   Defer a check for new slots for each group in which messages wait.
-- locks     new deferred rows
    set nocount on;
    declare @group_key varbinary(802) = 0x;

    -- Skip from group to group, so that not every message is read.
    while 1 = 1
    begin
        select top (1) @group_key = g.group_key
        from rowq.group_waiting g with (rowlock, readpast, readcommittedlock, forceseek)
        where g.queue_id = @queue_id
          and g.group_key > @group_key
        order by g.group_key, g.message_id
        option (maxdop 1, keepfixed plan);
        if @@rowcount = 0
            break;
        insert into rowq.deferred with (rowlock) (queue_id, due_at, deferred_id, group_key, is_hint)
        values (@queue_id, sysutcdatetime(), next value for rowq.message_seq, @group_key, 1);
    end;
end
go

create or alter procedure rowq.InternalTakeGroupSlot
    @queue_id int,
    @group_key varbinary(802),
    @group_limit int,
    @has_slot bit output
as
begin
-- purpose   Take a slot of a group; return 0 in @has_slot if the message has to wait.
-- locks     a new group_slot row, or the group's rows, shared; waits for sessions that add or
--           delete them
    set nocount on;
    declare @newest_limit int, @slots int, @slot_no int, @is_full bit;

    while 1 = 1
    begin
        -- This read waits for a session that adds or deletes a slot. A slot_no that differs from
        -- its position follows a gap.
        select @slots = count(*), @slot_no = min(iif(t.slot_no = t.position, 32767, t.position))
        from (
            select x.slot_no, row_number() over (order by x.slot_no) as position
            from rowq.group_slot x with (rowlock, readcommittedlock, forceseek)
            where x.queue_id = @queue_id
              and x.group_key = @group_key
        ) t
        option (maxdop 1, keepfixed plan);

        set @is_full = iif(@slots < @group_limit, 0, 1);
        if @is_full = 0
        begin
            -- Add the first free slot. The count respects a limit that was lowered. If another
            -- session has just added this slot, the insert adds no row (ignore_dup_key): count
            -- again.
            set @slot_no = iif(@slot_no < 32767, @slot_no, @slots + 1);
            insert into rowq.group_slot with (rowlock) (queue_id, group_key, slot_no)
            values (@queue_id, @group_key, @slot_no);
            set @has_slot = @@rowcount;
            -- Every limit allows one slot.
            if @has_slot = 1 and @group_limit = 1
                break;
        end;
        else
        begin
            -- Lock the slots shared until the transaction ends (repeatableread), so that no session
            -- deletes the last one while this message joins. If one was deleted before, count
            -- again.
            select @slots = count(*)
            from rowq.group_slot x with (rowlock, repeatableread, forceseek)
            where x.queue_id = @queue_id
              and x.group_key = @group_key
            option (maxdop 1, keepfixed plan);
            set @has_slot = 0;
        end;

        -- The statements above may have waited, and an AlterQueue that ran then did not see this
        -- message. Read the limit again.
        select @newest_limit = q.group_limit
        from rowq.queue q with (forceseek)
        where q.queue_id = @queue_id;
        if @has_slot = 1 and @newest_limit >= @group_limit
            or @is_full = 1 and @slots >= @newest_limit
            break;
        if @has_slot = 1
            delete from rowq.group_slot with (rowlock)
            where queue_id = @queue_id
              and group_key = @group_key
              and slot_no = @slot_no;
        set @group_limit = @newest_limit;
    end;
end
go

create or alter procedure rowq.InternalJoinGroups
    @queue_id int,
    @group_limit int,
    @messages rowq.message_list readonly
as
begin
-- purpose   Make messages ready, or let them wait in their groups.
-- locks     as InternalTakeGroupSlot, in the order of the keys; new ready and group_waiting rows
-- differs   elsewhere the caller makes messages ready
-- A message that has a slot, or no group, becomes ready with its place as seq.
    set nocount on;
    declare @turn int = 0, @group_key varbinary(802), @full_key varbinary(802) = 0x, @has_slot bit;
    declare @joining table (
        turn       int not null primary key,
        message_id bigint not null,
        group_key  varbinary(802) not null,
        has_slot  bit not null
    );

    insert into @joining (turn, message_id, group_key, has_slot)
    select row_number() over (order by j.group_key, j.message_id), j.message_id, j.group_key, 0
    from @messages j
    where j.group_key is not null;

    while 1 = 1
    begin
        set @turn += 1;
        select @group_key = j.group_key from @joining j where j.turn = @turn;
        if @@rowcount = 0
            break;
        -- A full group stays full until this transaction ends.
        if @group_key = @full_key
            continue;
        exec rowq.InternalTakeGroupSlot @queue_id, @group_key, @group_limit, @has_slot output;
        if @has_slot = 1
            update @joining set has_slot = 1 where turn = @turn;
        else
            set @full_key = @group_key;
    end;

    insert into rowq.ready with (rowlock) (queue_id, lane, seq, message_id, attempt)
    select @queue_id, j.lane, j.place, j.message_id, j.attempt
    from @messages j
    where not exists (
              select 1
              from @joining w
              where w.message_id = j.message_id
                and w.has_slot = 0
          )
    option (hash join, maxdop 1, keepfixed plan);
    insert into rowq.group_waiting with (rowlock) (queue_id, group_key, message_id, lane)
    select @queue_id, w.group_key, w.message_id, j.lane
    from @joining w
    inner join @messages j on j.message_id = w.message_id
    where w.has_slot = 0
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalReleaseGroupSlots
    @queue_id int,
    @messages rowq.message_list readonly,
    @may_close bit
as
begin
-- purpose   Pass on the slots of ended messages; defer those that cannot be passed now.
-- locks     as InternalPassGroupSlot; new ready and deferred rows
    set nocount on;
    declare @group_limit int, @pause float, @position int = 0, @group_key varbinary(802),
        @message_id bigint, @lane smallint, @is_left bit;
    declare @turns table (
        position  int not null primary key,
        group_key varbinary(802) not null
    );
    declare @ready rowq.message_list;

    select @group_limit = q.group_limit, @pause = q.group_pause_seconds
    from rowq.queue q with (forceseek)
    where q.queue_id = @queue_id;
    if @pause > 0
    begin
        -- The group pauses: maintain passes the slot after that.
        insert into rowq.deferred with (rowlock) (queue_id, due_at, deferred_id, group_key)
        select @queue_id,
               dateadd(
                   microsecond, cast(round((@pause - floor(@pause)) * 1e6, 0) as int),
                   dateadd(second, cast(floor(@pause) as int), sysutcdatetime())
               ),
               next value for rowq.message_seq, j.group_key
        from @messages j
        option (maxdop 1, keepfixed plan);
        return;
    end;

    -- If group_limit is above 1, several messages of one group may end at once. Groups take turns.
    insert into @turns (position, group_key)
    select row_number() over (order by t.turn, t.group_key), t.group_key
    from (
        select j.group_key, row_number() over (
                   partition by j.group_key
                   order by j.message_id
               ) as turn
        from @messages j
    ) t;

    while 1 = 1
    begin
        set @position += 1;
        select @group_key = t.group_key from @turns t where t.position = @position;
        if @@rowcount = 0
            break;
        exec rowq.InternalPassGroupSlot
            @queue_id, @group_key, @group_limit, @may_close, @message_id output, @lane output,
            @is_left output;
        if @message_id is not null
            insert into @ready (message_id, lane, place, attempt)
            values (@message_id, @lane, @position, 0);
        if @is_left = 1
            insert into rowq.deferred with (rowlock) (queue_id, due_at, deferred_id, group_key)
            values (@queue_id, sysutcdatetime(), next value for rowq.message_seq, @group_key);
    end;
    if exists (select 1 from @ready)
        exec rowq.InternalPushReady @queue_id, @ready;
end
go

create or alter procedure rowq.InternalPassGroupSlot
    @queue_id int,
    @group_key varbinary(802),
    @group_limit int,
    @may_close bit,
    @message_id bigint output,
    @lane smallint output,
    @is_left bit output
as
begin
-- purpose   Pass one slot of a group to its next message, which the caller makes ready, or delete it.
-- locks     group_slot and group_waiting rows, skipping locked ones
    set nocount on;
    declare @slot_no smallint, @locked int = 0, @shown int;
    set @message_id = null;
    set @is_left = 0;

    -- Lock a slot exclusively: no producer is joining and no cancel is running. Only rowq's own
    -- transactions do so, which are short, because joining producers wait for this lock.
    if @may_close = 1
        select top (1) @slot_no = t.slot_no, @locked = 1
        from rowq.group_slot t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.queue_id = @queue_id
          and t.group_key = @group_key
        order by t.slot_no desc
        option (maxdop 1, keepfixed plan);
    -- Joining producers share this lock. Two sessions that remove messages from one group do not,
    -- so no message is overtaken while a rollback may restore it.
    if @slot_no is null
        select top (1) @slot_no = t.slot_no
        from rowq.group_slot t with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where t.queue_id = @queue_id
          and t.group_key = @group_key
        order by t.slot_no desc
        option (maxdop 1, keepfixed plan);
    if @slot_no is null
    begin
        set @is_left = 1;
        return;
    end;

    if @slot_no > @group_limit
        and exists (
            select 1
            from rowq.group_slot t with (rowlock, readpast, readcommittedlock, forceseek)
            where t.queue_id = @queue_id
              and t.group_key = @group_key
              and t.slot_no <= @group_limit
        )
    begin
        -- The limit was lowered: delete the lowest slot above it that is not locked.
        set @is_left = iif(@locked = 1, 0, 1);
        if @is_left = 1
            return;
        select top (1) @slot_no = t.slot_no
        from rowq.group_slot t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.queue_id = @queue_id
          and t.group_key = @group_key
          and t.slot_no > @group_limit
        order by t.slot_no
        option (maxdop 1, keepfixed plan);
        delete t
        from rowq.group_slot t with (rowlock, forceseek)
        where t.queue_id = @queue_id
          and t.group_key = @group_key
          and t.slot_no = @slot_no
        option (maxdop 1, keepfixed plan);
        return;
    end;

    while 1 = 1
    begin
        -- Skipped rows are not committed yet, or another session passes them on. The update lock
        -- waits for readers in the delete, because a row that a reader has locked must not be
        -- overtaken.
        select top (1) @message_id = g.message_id, @lane = g.lane
        from rowq.group_waiting g with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where g.queue_id = @queue_id
          and g.group_key = @group_key
        order by g.message_id
        option (maxdop 1, keepfixed plan);
        if @message_id is not null
        begin
            delete g
            from rowq.group_waiting g with (rowlock, forceseek)
            where g.queue_id = @queue_id
              and g.group_key = @group_key
              and g.message_id = @message_id
            option (maxdop 1, keepfixed plan);
            return;
        end;
        if @locked = 0
        begin
            set @is_left = 1;
            return;
        end;

        -- The group is empty. If all slots are locked exclusively, no producer is joining: delete
        -- one, if the read above came after the locks. Otherwise read once more.
        select @shown = count(*)
        from rowq.group_slot t with (rowlock, readpast, readcommittedlock, forceseek)
        where t.queue_id = @queue_id
          and t.group_key = @group_key
        option (maxdop 1, keepfixed plan);
        if @shown <= @locked
            break;
        select @locked = count(*)
        from rowq.group_slot t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.queue_id = @queue_id
          and t.group_key = @group_key
        option (maxdop 1, keepfixed plan);
        if @locked < @shown
        begin
            set @is_left = 1;
            return;
        end;
    end;

    delete t
    from rowq.group_slot t with (rowlock, forceseek)
    where t.queue_id = @queue_id
      and t.group_key = @group_key
      and t.slot_no = @slot_no
    option (maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalTryJoinGroup
    @queue_id int,
    @group_key varbinary(802),
    @message_id bigint,
    @lane smallint,
    @has_slot bit output
as
begin
-- purpose   Let a message join its group: 1 has a slot, 0 waits in the group, null is undecided.
-- locks     as InternalTryTakeGroupSlot; a group_slot row, skipped if locked; a new group_waiting
--           row
-- differs   no such helper elsewhere: there a session that finds a group full holds its slots
-- With a slot, the caller makes it ready. Call it in rowq's own transaction.
    set nocount on;
    declare @group_limit int, @slot_no smallint;

    select @group_limit = q.group_limit
    from rowq.queue q with (forceseek)
    where q.queue_id = @queue_id;
    exec rowq.InternalTryTakeGroupSlot @queue_id, @group_key, @group_limit, @has_slot output;
    if @has_slot = 1 or @has_slot is null
        return;

    -- Lock a slot until the transaction ends, so that no session deletes the last one while this
    -- message joins.
    select top (1) @slot_no = t.slot_no
    from rowq.group_slot t with (rowlock, updlock, readpast, readcommittedlock, forceseek)
    where t.queue_id = @queue_id
      and t.group_key = @group_key
    order by t.slot_no
    option (maxdop 1, keepfixed plan);
    if @slot_no is null
        set @has_slot = null;
    else
        insert into rowq.group_waiting with (rowlock) (queue_id, group_key, message_id, lane)
        values (@queue_id, @group_key, @message_id, @lane);
end
go

create or alter procedure rowq.InternalTryTakeGroupSlot
    @queue_id int,
    @group_key varbinary(802),
    @group_limit int,
    @has_slot bit output
as
begin
-- purpose   Take a slot of a group: @has_slot is 0 if it is full, null if undecided.
-- locks     a new group_slot row
-- differs   elsewhere it waits briefly for a producer, and locks the slots of a full group
-- null: a producer is adding it, or the limit fell. Call it in rowq's own transaction.
    set nocount on;
    -- The insert below waits for a session that deletes the slot, and for a producer that has added
    -- it since the count. After 100 ms error 1222 ends this transaction, and the call retries.
    set lock_timeout 100;
    declare @slots int, @slot_no int, @shown int;
    set @has_slot = null;

    select @slots = count(*), @slot_no = min(iif(t.slot_no = t.position, 32767, t.position))
    from (
        select x.slot_no, row_number() over (order by x.slot_no) as position
        from rowq.group_slot x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.queue_id = @queue_id
          and x.group_key = @group_key
    ) t
    option (maxdop 1, keepfixed plan);
    if @slots >= @group_limit
    begin
        set @has_slot = 0;
        return;
    end;

    -- A dirty read shows the slot of an open producer, which the count has skipped.
    select @shown = count(*)
    from rowq.group_slot x with (readuncommitted, forceseek)
    where x.queue_id = @queue_id
      and x.group_key = @group_key
    option (maxdop 1, keepfixed plan);
    if @shown > @slots
        return;

    set @slot_no = iif(@slot_no < 32767, @slot_no, @slots + 1);
    insert into rowq.group_slot with (rowlock) (queue_id, group_key, slot_no)
    values (@queue_id, @group_key, @slot_no);
    if @@rowcount = 0
        return;

    -- The insert may have waited, so read the limit again. Every limit allows one slot.
    if @group_limit > 1
        and @group_limit > (
            select q.group_limit
            from rowq.queue q with (forceseek)
            where q.queue_id = @queue_id
        )
        delete from rowq.group_slot with (rowlock)
        where queue_id = @queue_id
          and group_key = @group_key
          and slot_no = @slot_no;
    else
        set @has_slot = 1;
end
go

create or alter procedure rowq.InternalAddGroupSlots
    @queue_id int,
    @group_limit int,
    @group_key varbinary(802),
    @is_done bit output
as
begin
-- purpose   Add the slots that a raised limit allows a group; @is_done is 0 to retry.
-- locks     as InternalTryTakeGroupSlot and InternalReleaseGroupSlots
    set nocount on;
    declare @has_slot bit = 1;
    declare @leaving rowq.message_list;

    insert into @leaving (message_id, lane, place, attempt, group_key)
    values (0, 0, 0, 0, @group_key);
    while @has_slot = 1
        and exists (
            select 1
            from rowq.group_waiting g with (rowlock, readpast, readcommittedlock, forceseek)
            where g.queue_id = @queue_id
              and g.group_key = @group_key
        )
    begin
        exec rowq.InternalTryTakeGroupSlot @queue_id, @group_key, @group_limit, @has_slot output;
        if @has_slot = 1
            exec rowq.InternalReleaseGroupSlots @queue_id, @leaving, @may_close = 1;
    end;
    set @is_done = iif(@has_slot is null, 0, 1);
end
go
