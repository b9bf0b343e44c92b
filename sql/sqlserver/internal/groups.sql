-- Groups: at most group_limit messages of one group_key in work.
--
-- The right to be ready, leased or delayed for a retry is a slot, a row of group_slot. A message
-- without one waits in group_waiting, where dequeue never looks. The call that ends a message
-- passes its slot to the group's next message, or deletes it, in the same transaction. So a slot
-- cannot leak, and groups take turns. A producer whose message joins the group locks its slots
-- until its transaction ends, so the last one is not deleted while a message is coming. If a slot
-- cannot be passed on now, a row of deferred defers that to maintain: no worker waits for a
-- producer.
--
-- A call inside the caller's transaction neither opens nor closes a group, so that no producer
-- waits for a worker's open transaction.
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
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- locks     new deferred rows
    set nocount on;
    declare @group_key varbinary(802) = 0x;

    -- Go from group to group and not from message to message.
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
-- purpose   Take a slot of a group: @has_slot is 0 where the message has to wait behind others.
-- locks     a new group_slot row, or the group's, shared; waits for who opens or closes it
    set nocount on;
    declare @newest_limit int;
    declare @slots int;
    declare @slot_no int;
    declare @is_full bit;

    while 1 = 1
    begin
        -- This look waits for a session that is opening or closing the group. A number that differs
        -- from its place in the order has a gap before it.
        select @slots = count(*), @slot_no = min(iif(t.slot_no = t.place, 32767, t.place))
        from (
            select x.slot_no, row_number() over (order by x.slot_no) as place
            from rowq.group_slot x with (rowlock, readcommittedlock, forceseek)
            where x.queue_id = @queue_id
              and x.group_key = @group_key
        ) t
        option (maxdop 1, keepfixed plan);

        set @is_full = iif(@slots < @group_limit, 0, 1);
        if @is_full = 0
        begin
            -- Take the first free number. The count keeps a limit that was lowered. If another
            -- session takes the number meanwhile, this inserts no row (ignore_dup_key): look again.
            set @slot_no = iif(@slot_no < 32767, @slot_no, @slots + 1);
            insert into rowq.group_slot with (rowlock) (queue_id, group_key, slot_no)
            values (@queue_id, @group_key, @slot_no);
            set @has_slot = @@rowcount;
            -- Any limit leaves room for one.
            if @has_slot = 1 and @group_limit = 1
                break;
        end;
        else
        begin
            -- Hold the slots shared to the end of the transaction (repeatableread): whoever would
            -- give the last one back knows by this that a message is coming. If one was given back
            -- before this had it, look again.
            select @slots = count(*)
            from rowq.group_slot x with (rowlock, repeatableread, forceseek)
            where x.queue_id = @queue_id
              and x.group_key = @group_key
            option (maxdop 1, keepfixed plan);
            set @has_slot = 0;
        end;

        -- Each of these may have waited, and an AlterQueue that has come meanwhile does not see
        -- this message. So what counts is the limit that is read after them.
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
-- purpose   Let messages join their groups: one that gets a slot is ready, with its place as seq, and so is one without a group; the others wait.
-- locks     as InternalTakeGroupSlot, in the order of the keys; new ready and group_waiting rows
-- differs   elsewhere the caller makes messages ready
    set nocount on;
    declare @turn int = 0;
    declare @group_key varbinary(802);
    declare @full_key varbinary(802) = 0x;
    declare @has_slot bit;
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
        -- A group that is full stays so until the end of this transaction.
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
-- purpose   Pass on the slots of messages that have ended, one for each; leave to maintain those that cannot be passed on now.
-- locks     as InternalPassGroupSlot; new ready and deferred rows
    set nocount on;
    declare @group_limit int;
    declare @pause float;
    declare @place int = 0;
    declare @group_key varbinary(802);
    declare @message_id bigint;
    declare @lane smallint;
    declare @is_left bit;
    declare @turns table (
        place     int not null primary key,
        group_key varbinary(802) not null
    );
    declare @ready rowq.message_list;

    select @group_limit = q.group_limit, @pause = q.group_pause_seconds
    from rowq.queue q with (forceseek)
    where q.queue_id = @queue_id;
    if @pause > 0
    begin
        -- The group rests: maintain goes on when that is over.
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

    -- Several messages of one group may end at once where its limit is above 1: groups take turns.
    insert into @turns (place, group_key)
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
        set @place += 1;
        select @group_key = t.group_key from @turns t where t.place = @place;
        if @@rowcount = 0
            break;
        exec rowq.InternalPassGroupSlot
            @queue_id, @group_key, @group_limit, @may_close, @message_id output, @lane output,
            @is_left output;
        if @message_id is not null
            insert into @ready (message_id, lane, place, attempt)
            values (@message_id, @lane, @place, 0);
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
-- purpose   Pass one slot of a group on to its next message, which is for the caller to make ready, or give it back; @is_left is 1 where nothing can be done now.
-- locks     group_slot and group_waiting rows, passing over locked ones
    set nocount on;
    declare @slot_no smallint;
    declare @locked int = 0;
    declare @seen int;
    set @message_id = null;
    set @is_left = 0;

    -- Lock a slot exclusively, so that nobody is coming or withdrawing a message. Only rowq's own
    -- transactions do that, which are short, because a producer that comes waits for this lock.
    if @may_close = 1
        select top (1) @slot_no = t.slot_no, @locked = 1
        from rowq.group_slot t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.queue_id = @queue_id
          and t.group_key = @group_key
        order by t.slot_no desc
        option (maxdop 1, keepfixed plan);
    -- Producers that are coming share this lock. Two that take messages out of one group of one do
    -- not, so none is overtaken by the next one while it may come back by a rollback.
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
        -- A slot beyond a limit that was lowered is given back: the lowest one that can be had.
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
        -- What this passes over is not committed yet, or another session passes it on. It takes an
        -- update lock, which waits for a reader in the delete, because a row that a reader keeps
        -- locked must not be overtaken.
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

        -- Nobody waits. Where all slots are locked exclusively, nobody is coming either: give one
        -- back, if the look above has come after the locks. Else look once more.
        select @seen = count(*)
        from rowq.group_slot t with (rowlock, readpast, readcommittedlock, forceseek)
        where t.queue_id = @queue_id
          and t.group_key = @group_key
        option (maxdop 1, keepfixed plan);
        if @seen <= @locked
            break;
        select @locked = count(*)
        from rowq.group_slot t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.queue_id = @queue_id
          and t.group_key = @group_key
        option (maxdop 1, keepfixed plan);
        if @locked < @seen
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
-- purpose   Let a message join its group: with a slot it is for the caller to make ready, with 0 it waits there, and null is undecided. Call it in a transaction of rowq's own.
-- locks     as InternalTryTakeGroupSlot; a group_slot row, tried; a new group_waiting row
-- differs   no such helper elsewhere: there whoever enters a group that is full holds its slots
    set nocount on;
    declare @group_limit int;
    declare @slot_no smallint;

    select @group_limit = q.group_limit
    from rowq.queue q with (forceseek)
    where q.queue_id = @queue_id;
    exec rowq.InternalTryTakeGroupSlot @queue_id, @group_key, @group_limit, @has_slot output;
    if @has_slot = 1 or @has_slot is null
        return;

    -- Hold a slot to the end of the transaction: whoever would give the last one back knows by
    -- this that a message is coming.
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
-- purpose   Take a slot of a group: @has_slot is 0 where it is full, and null where a producer is opening it, or the limit was lowered meanwhile. Call it in a transaction of rowq's own.
-- locks     a new group_slot row
-- differs   elsewhere it waits for a producer for a moment, and holds the slots of a full group
    set nocount on;
    -- The insert below waits for a session that is closing the group at this moment, and for a
    -- producer who has opened it after the look. If either takes longer, error 1222 ends this
    -- transaction, which starts again and sees by then what is going on.
    set lock_timeout 100;
    declare @slots int;
    declare @slot_no int;
    declare @seen int;
    set @has_slot = null;

    select @slots = count(*), @slot_no = min(iif(t.slot_no = t.place, 32767, t.place))
    from (
        select x.slot_no, row_number() over (order by x.slot_no) as place
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

    -- A dirty read sees the slot of an open producer, too, which the look has passed over.
    select @seen = count(*)
    from rowq.group_slot x with (readuncommitted, forceseek)
    where x.queue_id = @queue_id
      and x.group_key = @group_key
    option (maxdop 1, keepfixed plan);
    if @seen > @slots
        return;

    set @slot_no = iif(@slot_no < 32767, @slot_no, @slots + 1);
    insert into rowq.group_slot with (rowlock) (queue_id, group_key, slot_no)
    values (@queue_id, @group_key, @slot_no);
    if @@rowcount = 0
        return;

    -- That may have waited, so what counts is the limit that is read after it. Any leaves room for
    -- one.
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
-- purpose   Give a group whose limit was raised its new slots; @is_done is 0 where another look is needed. Call it in a transaction of rowq's own.
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
