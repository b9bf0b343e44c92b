-- Predecessors: messages that wait for others to end, and deferred work.
--
-- A message with predecessors waits in blocked, which dequeue does not read. A row of successor
-- links it to one predecessor at a time, the newest unfinished one. When that ends, the message is
-- linked to the next, or resumes at the front of its priority. The call that ends a message resumes
-- up to 1000 successors and defers the rest. If a predecessor dies, its successors are held, resume
-- or die, as their on_predecessor_dead says, 1000 at a time. deferred has the work that another
-- transaction's locks prevented: slots, blocked messages, rows of ended messages. maintain runs it.
--
-- The predecessor's row is locked and not changed, because a change would block its readers. A
-- producer reads it with nowait: error 1222 means that it is locked, not that it has ended.
--
--   enqueue, end_held -> await_predecessor
--   enqueue -> block
--   cancel -> unknown_of
--   store_batch -> block_batch -> await_predecessor, block
--   push_dead -> propagate_deaths -> propagate_death
--   propagate_death -> unblock
--   unblock -> try_unblock
--   try_unblock -> is_blocked, await_predecessor
--   release_links, end_held, archive -> resume_successors -> resume_blocked
--   resume_blocked -> unblock, propagate_deaths
--   dequeue, maintain_delivery -> run_deferred -> resume_blocked, retry_propagation,
--       resume_successors
--   retry_propagation -> await_predecessor, propagate_deaths
--   enqueue_batch -> refuse_predecessors
--
-- Writes blocked, dead, delayed, message, deferred, successor. Only reads finished, lane, queue.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalAwaitPredecessor
    @queue_id int,
    @predecessor_ids nvarchar(max),
    @on_dead nvarchar(20),
    @state nvarchar(20) output,
    @predecessor_id bigint output,
    @remaining_ids nvarchar(max) output
as
begin
-- purpose   Find and lock the newest unfinished predecessor: waiting, free, failed or unsure.
-- locks     the predecessor's message row, shared, never waiting
-- differs   elsewhere it also inserts the successor row
    set nocount on;
    declare @before bigint = 9223372036854775807, @floor bigint, @since datetime2(6),
        @dead_id bigint, @has_ended bit;
    declare @ids table (message_id bigint not null primary key);
    declare @ended table (message_id bigint not null primary key);
    set @state = null;
    set @remaining_ids = null;

    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@predecessor_ids) j;
    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -3 /* finished */;
    exec rowq.InternalFromMicroseconds @floor, @since output;

    -- A row that another session has locked raises error 1222 (nowait), so that it is not taken for
    -- a missing one. xact_abort is off here so that the error ends no transaction. That is safe
    -- because this block neither writes nor waits, so no client timeout can fall into it.
    set xact_abort off;
    while @state is null
    begin
        begin try
            -- Lock the row until the transaction ends (repeatableread): a session that ends the
            -- predecessor waits, or defers a check.
            set @predecessor_id = null;
            set @dead_id = null;
            set @has_ended = 0;
            select top (1) @predecessor_id = m.message_id
            from @ids j
            inner join rowq.message m
                with (
                    rowlock, repeatableread, nowait, forceseek (message_pk (queue_id, message_id))
                )
                on m.queue_id = @queue_id
               and m.message_id = j.message_id
            where j.message_id < @before
            order by j.message_id desc
            option (loop join, force order, maxdop 1, keepfixed plan);
            if @predecessor_id is not null and @on_dead in (N'continue', N'fail')
                select @dead_id = d.message_id
                from rowq.dead d with (rowlock, readcommittedlock, nowait, forceseek)
                where d.queue_id = @queue_id
                  and d.message_id = @predecessor_id;

            -- The archiver deletes the message row later, and resumes messages that did not see the
            -- end here.
            if @predecessor_id is not null
                select top (1) @has_ended = 1
                from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
                where f.queue_id = @queue_id
                  and f.finished_at >= @since
                  and f.message_id = @predecessor_id
                option (maxdop 1, keepfixed plan);
            if @has_ended = 1
            begin
                -- Thousands may have ended since the last archive: skip all of them at once.
                delete from @ended;
                insert into @ended (message_id)
                select distinct f.message_id
                from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
                inner join @ids j on j.message_id = f.message_id
                where f.queue_id = @queue_id
                  and f.finished_at >= @since
                option (hash join, force order, maxdop 1, keepfixed plan);
                delete j
                from @ids j
                inner join @ended e on e.message_id = j.message_id;
            end;

            set @state = case
                when @predecessor_id is null then N'free'
                when @has_ended = 1 then null
                when @dead_id is null then N'waiting'
                when @on_dead = N'fail' then N'failed'
            end;
            if @state is null
                set @before = @predecessor_id;
        end try
        begin catch
            if error_number() <> 1222
                throw;
            set @state = N'unsure';
            set @predecessor_id = null;
        end catch;
    end;

    if @state in (N'waiting', N'unsure')
        select @remaining_ids = N'[' + string_agg(cast(j.message_id as nvarchar(max)), N',')
                   within group (order by j.message_id desc) + N']'
        from @ids j
        where j.message_id < coalesce(@predecessor_id, @before);
end
go

create or alter procedure rowq.InternalBlock
    @queue_id int,
    @message_id bigint,
    @lane smallint,
    @due_at datetime2(6),
    @group_key varbinary(802),
    @on_dead nvarchar(20),
    @state nvarchar(20),
    @predecessor_id bigint,
    @remaining_ids nvarchar(max)
as
begin
-- purpose   Let a new message wait for a predecessor, or fail with it, as InternalAwaitPredecessor found.
-- locks     new blocked, successor, deferred, dead and result rows; its own message and dedup rows
    set nocount on;
    declare @links rowq.link_list;
    declare @ended rowq.message_list;

    if @state = N'failed'
    begin
        insert into rowq.dead with (rowlock) (queue_id, message_id, lane, attempt, died_at)
        values (@queue_id, @message_id, @lane, 0, sysutcdatetime());
        update m
        set last_error = concat(N'predecessor ', @predecessor_id, N' is dead')
        from rowq.message m with (rowlock, forceseek)
        where m.queue_id = @queue_id
          and m.message_id = @message_id
        option (maxdop 1, keepfixed plan);
        insert into @ended (message_id, lane, place, attempt) values (@message_id, @lane, 0, 0);
        exec rowq.InternalPushResult @queue_id, @ended, N'dead';
        insert into @links (message_id, dedup_key)
        select m.message_id, m.dedup_key
        from rowq.message m with (forceseek)
        where m.queue_id = @queue_id
          and m.message_id = @message_id
          and m.dedup_key is not null;
        if @@rowcount > 0
            exec rowq.InternalReleaseLinks @queue_id, @links, @may_close = 0;
        return;
    end;

    if @state = N'waiting'
        insert into rowq.successor with (rowlock) (queue_id, predecessor_id, message_id, on_dead)
        values (@queue_id, @predecessor_id, @message_id, @on_dead);
    else
        insert into rowq.deferred with (rowlock) (queue_id, due_at, deferred_id, message_id)
        values (@queue_id, sysutcdatetime(), next value for rowq.message_seq, @message_id);
    insert into rowq.blocked with (rowlock) (
        queue_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, remaining_ids
    )
    values (
        @queue_id, @message_id, @lane, @predecessor_id, @due_at, @on_dead, @group_key,
        @remaining_ids
    );
end
go

create or alter procedure rowq.InternalUnknownOf
    @queue_id int,
    @message_ids nvarchar(max),
    @unknown_ids nvarchar(max) output
as
begin
-- purpose   Return which of these messages have no body, or are finished and not yet archived, or null.
-- locks     message rows, shared while they are read, never waiting
-- differs   elsewhere a snapshot shows a message that an open transaction has finished
    set nocount on;
    declare @size int = 10000, @last_id bigint;
    declare @ids table (message_id bigint not null primary key);
    declare @unseen table (message_id bigint not null primary key);
    declare @unknown table (message_id bigint not null primary key);
    set @unknown_ids = null;

    insert into @ids (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    insert into @unknown (message_id)
    select distinct f.message_id
    from rowq.finished f with (rowlock, readpast, readcommittedlock, forceseek)
    inner join @ids j on j.message_id = f.message_id
    where f.queue_id = @queue_id
    option (hash join, force order, maxdop 1, keepfixed plan);
    -- A dirty read shows every message except deleted ones, even if their deletion is not
    -- committed. Only these are read again below.
    insert into @unseen (message_id)
    select j.message_id
    from @ids j
    where not exists (
            select 1
            from rowq.message m
                with (readuncommitted, forceseek (message_pk (queue_id, message_id)))
            where m.queue_id = @queue_id
              and m.message_id = j.message_id
        )
      and not exists (select 1 from @unknown u where u.message_id = j.message_id)
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- A row that another session has locked raises error 1222 (nowait), so that it is not taken for
    -- a missing one. xact_abort is off here so that the error ends no transaction. That is safe
    -- because this block neither writes nor waits, so no client timeout can fall into it.
    set xact_abort off;
    while 1 = 1
    begin
        set @last_id = null;
        select @last_id = max(h.message_id)
        from (select top (@size) n.message_id from @unseen n order by n.message_id) h;
        if @last_id is null
            break;
        begin try
            insert into @unknown (message_id)
            select n.message_id
            from @unseen n
            where n.message_id <= @last_id
              and not exists (
                  select 1
                  from rowq.message m
                      with (
                          rowlock, readcommittedlock, nowait,
                          forceseek (message_pk (queue_id, message_id))
                      )
                  where m.queue_id = @queue_id
                    and m.message_id = n.message_id
              )
            option (loop join, force order, maxdop 1, keepfixed plan);
        end try
        begin catch
            if error_number() <> 1222
                throw;
            -- Read them one by one, to find the locked one.
            if @size > 1
            begin
                set @size = 1;
                continue;
            end;
        end catch;
        delete n from @unseen n where n.message_id <= @last_id;
    end;
    select @unknown_ids = N'[' + string_agg(cast(u.message_id as nvarchar(max)), N',') + N']'
    from @unknown u;
end
go

create or alter procedure rowq.InternalBlockBatch
    @queue_id int,
    @messages nvarchar(max),
    @new rowq.new_list readonly
as
begin
-- purpose   Let new messages of a batch wait for their predecessors, or fail with them.
-- locks     as InternalAwaitPredecessor and InternalBlock
    set nocount on;
    declare @may_fail bit = 0, @message_id bigint = 0, @lane smallint, @due_at datetime2(6),
        @group_key varbinary(802), @on_dead nvarchar(20), @predecessor_ids nvarchar(max),
        @state nvarchar(20), @predecessor_id bigint, @remaining_ids nvarchar(max);
    declare @edges table (
        message_id     bigint not null,
        predecessor_id bigint not null,
        primary key (message_id, predecessor_id)
    );
    -- own_id is the newest predecessor, if it is a new message of this batch.
    declare @waiting table (
        message_id bigint not null primary key,
        lane       smallint not null,
        due_at     datetime2(6) null,
        group_key  varbinary(802) null,
        on_dead    nvarchar(20) collate Latin1_General_100_BIN2 null,
        own_id     bigint null
    );

    -- A duplicate counts as the message that owns its key.
    insert into @edges (message_id, predecessor_id)
    select distinct n.message_id, coalesce(h.owner, cast(i.value as bigint))
    from openjson(@messages) e
    cross apply openjson(e.value) p
    cross apply openjson(
        iif(
            p.[key] in (N'predecessor_ids', N'predecessor_positions') and p.[type] = 4,
            p.value, N'[]'
        )
    ) i
    inner join @new n
        on n.position = cast(e.[key] as int) + 1
       and n.owner = n.message_id
    left join @new h
        on h.position = cast(iif(p.[key] = N'predecessor_positions', i.value, N'0') as int)
    option (maxdop 1, keepfixed plan);
    insert into @waiting (message_id, lane, due_at, group_key, on_dead, own_id)
    select w.message_id, n.lane, n.due_at, n.group_key, n.on_dead, o.message_id
    from (
        select g.message_id, max(g.predecessor_id) as newest_id
        from @edges g
        group by g.message_id
    ) w
    inner join @new n on n.message_id = w.message_id
    left join @new o
        on o.message_id = w.newest_id
       and o.owner = o.message_id
    option (hash join, maxdop 1, keepfixed plan);

    -- No other session sees a predecessor of this batch, so it can only have failed with another
    -- one.
    select @may_fail = 1 from @waiting w where w.own_id is null and w.on_dead = N'fail';
    if @may_fail = 0
    begin
        insert into rowq.successor with (rowlock) (queue_id, predecessor_id, message_id, on_dead)
        select @queue_id, w.own_id, w.message_id, w.on_dead
        from @waiting w
        where w.own_id is not null
        option (maxdop 1, keepfixed plan);
        insert into rowq.blocked with (rowlock) (
            queue_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, remaining_ids
        )
        select @queue_id, w.message_id, w.lane, w.own_id, w.due_at, w.on_dead, w.group_key, r.ids
        from @waiting w
        cross apply (
            select N'[' + string_agg(cast(g.predecessor_id as nvarchar(max)), N',')
                       within group (order by g.predecessor_id desc) + N']'
            from @edges g
            where g.message_id = w.message_id
              and g.predecessor_id < w.own_id
        ) r (ids)
        where w.own_id is not null
        option (maxdop 1, keepfixed plan);
        delete from @waiting where own_id is not null;
    end;

    while 1 = 1
    begin
        select top (1) @message_id = w.message_id, @lane = w.lane, @due_at = w.due_at,
               @group_key = w.group_key, @on_dead = w.on_dead
        from @waiting w
        where w.message_id > @message_id
        order by w.message_id;
        if @@rowcount = 0
            break;
        select @predecessor_ids = N'[' + string_agg(cast(g.predecessor_id as nvarchar(max)), N',')
                   + N']'
        from @edges g
        where g.message_id = @message_id;
        exec rowq.InternalAwaitPredecessor
            @queue_id, @predecessor_ids, @on_dead, @state output, @predecessor_id output,
            @remaining_ids output;
        if @state <> N'free'
            exec rowq.InternalBlock
                @queue_id, @message_id, @lane, @due_at, @group_key, @on_dead, @state,
                @predecessor_id, @remaining_ids;
    end;
end
go

create or alter procedure rowq.InternalPropagateDeaths
    @queue_id int,
    @message_ids nvarchar(max),
    @failed nvarchar(max),
    @may_join bit
as
begin
-- purpose   Propagate the deaths of messages to their successors, level by level.
-- locks     message rows, skipped if locked; new dead and result rows; dedup rows; as
--           InternalPropagateDeath; new deferred rows
-- @failed: messages to make dead first, as InternalUnblock returns them.
    set nocount on;
    declare @most int = 1000, @count int = 0, @next nvarchar(max) = @failed, @dead_id bigint;
    declare @dead table (message_id bigint not null primary key);
    declare @lost table (
        message_id bigint not null primary key,
        lane       smallint not null,
        dead_id    bigint not null
    );
    declare @held table (
        message_id bigint not null primary key,
        is_awaited bit not null
    );
    declare @links rowq.link_list;
    declare @ended rowq.message_list;

    insert into @dead (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    while 1 = 1
    begin
        if @next is not null
        begin
            delete from @lost;
            insert into @lost (message_id, lane, dead_id)
            select j.message_id, j.lane, j.dead_id
            from openjson(@next) with (
                message_id bigint '$[0]', lane smallint '$[1]', dead_id bigint '$[2]'
            ) j;
            insert into rowq.dead with (rowlock) (queue_id, message_id, lane, attempt, died_at)
            select @queue_id, f.message_id, f.lane, 0, sysutcdatetime()
            from @lost f
            option (maxdop 1, keepfixed plan);
            update m
            set last_error = concat(N'predecessor ', f.dead_id, N' is dead')
            from @lost f
            inner join rowq.message m with (rowlock, forceseek)
                on m.queue_id = @queue_id
               and m.message_id = f.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete from @ended;
            insert into @ended (message_id, lane, place, attempt)
            select f.message_id, f.lane, 0, 0 from @lost f;
            exec rowq.InternalPushResult @queue_id, @ended, N'dead';
            delete from @links;
            insert into @links (message_id, dedup_key)
            select m.message_id, m.dedup_key
            from @lost f
            inner join rowq.message m with (forceseek (message_pk (queue_id, message_id)))
                on m.queue_id = @queue_id
               and m.message_id = f.message_id
               and m.dedup_key is not null
            option (loop join, force order, maxdop 1, keepfixed plan);
            if @@rowcount > 0
                exec rowq.InternalReleaseLinks @queue_id, @links, @may_join;
            delete from @dead;
            insert into @dead (message_id)
            select f.message_id from @lost f;
            set @count += @@rowcount;
        end;

        -- If a row is locked, a producer is adding a successor: defer the check.
        delete from @held;
        insert into @held (message_id, is_awaited)
        select m.message_id, iif(s.predecessor_id is null, 0, 1)
        from @dead j
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
                with (
                    rowlock, readcommittedlock, forceseek (successor_pk (queue_id, predecessor_id))
                )
            where x.queue_id = @queue_id
              and x.predecessor_id = m.message_id
        ) s
        option (loop join, force order, maxdop 1, keepfixed plan);
        insert into rowq.deferred with (rowlock)
            (queue_id, due_at, deferred_id, predecessor_id, is_hint)
        select @queue_id, sysutcdatetime(), next value for rowq.message_seq, j.message_id, 1
        from @dead j
        where not exists (select 1 from @held h where h.message_id = j.message_id)
        option (loop join, maxdop 1, keepfixed plan);

        -- A deep tree dies in steps, to keep transactions short.
        if @count > @most
        begin
            insert into rowq.deferred with (rowlock)
                (queue_id, due_at, deferred_id, predecessor_id, is_hint)
            select @queue_id, sysutcdatetime(), next value for rowq.message_seq, h.message_id, 1
            from @held h
            where h.is_awaited = 1
            option (maxdop 1, keepfixed plan);
            return;
        end;

        set @next = null;
        set @dead_id = 0;
        while 1 = 1
        begin
            select top (1) @dead_id = h.message_id
            from @held h
            where h.message_id > @dead_id
              and h.is_awaited = 1
            order by h.message_id;
            if @@rowcount = 0
                break;
            exec rowq.InternalPropagateDeath @queue_id, @dead_id, @may_join, @next output;
        end;
        if @next is null
            return;
    end;
end
go

create or alter procedure rowq.InternalPropagateDeath
    @queue_id int,
    @dead_id bigint,
    @may_join bit,
    @failed nvarchar(max) output
as
begin
-- purpose   Resume successors of a dead message that continue; add those that fail to @failed.
-- locks     successor rows; as InternalUnblock; new deferred rows
    set nocount on;
    declare @most int = 1000, @count int, @ids nvarchar(max), @again nvarchar(max),
        @some nvarchar(max);
    declare @asking table (
        message_id bigint not null primary key
    );

    with head as (
        select top (@most) s.queue_id, s.predecessor_id, s.message_id
        from rowq.successor s with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where s.queue_id = @queue_id
          and s.predecessor_id = @dead_id
          and s.on_dead in (N'continue', N'fail')
        order by s.message_id
    )
    delete from head
    output deleted.message_id
    into @asking (message_id)
    option (maxdop 1, keepfixed plan);
    set @count = @@rowcount;
    if @count = 0
        return;
    if @count = @most
        insert into rowq.deferred with (rowlock)
            (queue_id, due_at, deferred_id, predecessor_id, is_hint)
        values (@queue_id, sysutcdatetime(), next value for rowq.message_seq, @dead_id, 1);

    select @ids = N'[' + string_agg(cast(a.message_id as nvarchar(max)), N',') + N']'
    from @asking a;
    exec rowq.InternalUnblock @queue_id, @ids, null, @may_join, @again output, @some output;
    if @again is not null
        insert into rowq.deferred with (rowlock) (queue_id, due_at, deferred_id, message_id)
        select @queue_id, sysutcdatetime(), next value for rowq.message_seq, cast(j.value as bigint)
        from openjson(@again) j
        option (maxdop 1, keepfixed plan);
    if @some is not null
        set @failed = iif(
            @failed is null, @some,
            concat(left(@failed, len(@failed) - 1), N',', substring(@some, 2, len(@some)))
        );
end
go

create or alter procedure rowq.InternalUnblock
    @queue_id int,
    @message_ids nvarchar(max),
    @ended_id bigint,
    @may_join bit,
    @again nvarchar(max) output,
    @failed nvarchar(max) output
as
begin
-- purpose   Check what blocked messages wait for, and resume those that wait for nothing.
-- locks     blocked rows, skipped if locked; as InternalTryUnblock; new ready rows
-- @again: ids to retry. @failed: messages that fail, [message_id, lane, dead predecessor].
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime(), @message_id bigint, @state nvarchar(20),
        @lane smallint, @dead_id bigint;
    declare @asked table (message_id bigint not null primary key);
    declare @left table (
        message_id bigint not null primary key,
        lane       smallint null,
        dead_id    bigint null
    );
    declare @ready rowq.message_list;
    set @again = null;
    set @failed = null;

    insert into @asked (message_id)
    select distinct cast(j.value as bigint) from openjson(@message_ids) j;
    -- Messages that have been blocked go to the front of their priorities.
    delete b
    output deleted.message_id, deleted.lane / 2 * 2, 0, 0
    into @ready (message_id, lane, place, attempt)
    from @asked a
    inner join rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on b.queue_id = @queue_id
       and b.message_id = a.message_id
    where b.predecessor_id = @ended_id
      and b.remaining_ids is null
      and b.group_key is null
      and (b.due_at is null or b.due_at <= @now)
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete a
    from @asked a
    where exists (select 1 from @ready r where r.message_id = a.message_id);

    while 1 = 1
    begin
        set @message_id = null;
        select top (1) @message_id = a.message_id from @asked a order by a.message_id;
        if @message_id is null
            break;
        -- A message may name 10000 predecessors: leave slow work to maintain.
        if datediff(millisecond, @now, sysutcdatetime()) > 200
        begin
            insert into @left (message_id)
            select a.message_id from @asked a;
            break;
        end;
        delete from @asked where message_id = @message_id;
        exec rowq.InternalTryUnblock
            @queue_id, @message_id, @ended_id, @may_join, @state output, @lane output,
            @dead_id output;
        if @state = N'ready'
            insert into @ready (message_id, lane, place, attempt)
            values (@message_id, @lane, 0, 0);
        else if @state in (N'again', N'failed')
            insert into @left (message_id, lane, dead_id)
            values (@message_id, @lane, iif(@state = N'failed', @dead_id, null));
    end;
    if exists (select 1 from @ready)
        exec rowq.InternalPushReady @queue_id, @ready;

    select @again = N'[' + string_agg(cast(f.message_id as nvarchar(max)), N',') + N']'
    from @left f
    where f.dead_id is null;
    select @failed = N'[' + string_agg(cast(j.entry as nvarchar(max)), N',') + N']'
    from (
        select concat(N'[', f.message_id, N',', f.lane, N',', f.dead_id, N']') as entry
        from @left f
        where f.dead_id is not null
    ) j;
end
go

create or alter procedure rowq.InternalTryUnblock
    @queue_id int,
    @message_id bigint,
    @ended_id bigint,
    @may_join bit,
    @state nvarchar(20) output,
    @lane smallint output,
    @dead_id bigint output
as
begin
-- purpose   Check what a blocked message waits for.
-- locks     the blocked row and the message row, skipped if locked; as InternalAwaitPredecessor and
--           InternalTryJoinGroup; new successor and delayed rows
-- @state: again, waiting, moved, gone, ready (in @lane), or failed with @dead_id. The caller moves
-- ready and failed ones.
    set nocount on;
    declare @locked_id bigint, @predecessor_id bigint, @due_at datetime2(6), @on_dead nvarchar(20),
        @group_key varbinary(802), @remaining_ids nvarchar(max), @ids nvarchar(max),
        @is_blocked bit, @has_slot bit;
    set @state = N'free';
    set @dead_id = null;

    select @locked_id = b.message_id, @lane = b.lane, @predecessor_id = b.predecessor_id,
           @due_at = b.due_at, @on_dead = b.on_dead, @group_key = b.group_key,
           @remaining_ids = b.remaining_ids
    from rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where b.queue_id = @queue_id
      and b.message_id = @message_id;
    if @locked_id is null
    begin
        -- It is gone, or another session is cancelling it.
        exec rowq.InternalIsBlocked @queue_id, @message_id, @is_blocked output;
        set @state = iif(@is_blocked = 1, N'again', N'gone');
        return;
    end;

    if @predecessor_id = @ended_id
        set @predecessor_id = null;
    set @ids = N'[' + nullif(
        concat(
            @predecessor_id, iif(@predecessor_id is null or @remaining_ids is null, N'', N','),
            substring(@remaining_ids, 2, len(@remaining_ids) - 2)
        ),
        N''
    ) + N']';
    if @ids is not null
        exec rowq.InternalAwaitPredecessor
            @queue_id, @ids, @on_dead, @state output, @predecessor_id output, @remaining_ids output;

    if @state = N'waiting'
    begin
        insert into rowq.successor with (rowlock) (queue_id, predecessor_id, message_id, on_dead)
        select @queue_id, @predecessor_id, @message_id, @on_dead
        where not exists (
            select 1
            from rowq.successor s with (rowlock, readcommittedlock, forceseek)
            where s.queue_id = @queue_id
              and s.predecessor_id = @predecessor_id
              and s.message_id = @message_id
        );
        update b
        set predecessor_id = @predecessor_id,
            remaining_ids = @remaining_ids
        from rowq.blocked b with (rowlock, forceseek)
        where b.queue_id = @queue_id
          and b.message_id = @message_id
        option (maxdop 1, keepfixed plan);
    end;
    else if @state = N'failed'
    begin
        -- Its row gets the error, and a producer may be adding a successor to it.
        set @locked_id = null;
        select @locked_id = m.message_id
        from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where m.queue_id = @queue_id
          and m.message_id = @message_id;
        set @state = iif(@locked_id is null, N'again', N'failed');
        set @dead_id = @predecessor_id;
    end;
    else if @state = N'free' and @due_at > sysutcdatetime()
    begin
        insert into rowq.delayed with (rowlock) (queue_id, due_at, message_id, lane, group_key)
        values (@queue_id, @due_at, @message_id, @lane, @group_key);
        set @state = N'moved';
    end;
    else if @state = N'free' and @group_key is not null
    begin
        -- Groups take turns, so it goes to the tail. A call that must not join a group leaves that
        -- to maintain.
        if @may_join = 1
            exec rowq.InternalTryJoinGroup
                @queue_id, @group_key, @message_id, @lane, @has_slot output;
        set @state = case @has_slot when 1 then N'ready' when 0 then N'moved' else N'again' end;
    end;
    else
    begin
        -- Messages that have been blocked go to the front.
        set @lane = @lane / 2 * 2;
        set @state = iif(@state = N'free', N'ready', N'again');
    end;

    if @state in (N'moved', N'ready', N'failed')
        delete b
        from rowq.blocked b with (rowlock, forceseek)
        where b.queue_id = @queue_id
          and b.message_id = @message_id
        option (maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalIsBlocked
    @queue_id int,
    @message_id bigint,
    @is_blocked bit output
as
begin
-- purpose   Return whether a message may still be blocked; a locked row counts as blocked.
-- locks     the blocked row, shared while it is read, never waiting
-- differs   no such helper elsewhere: there a plain read is enough
    set nocount on;
    declare @found_id bigint;

    -- As in InternalAwaitPredecessor, error 1222 must not end the transaction.
    set xact_abort off;
    begin try
        select @found_id = b.message_id
        from rowq.blocked b with (rowlock, readcommittedlock, nowait, forceseek)
        where b.queue_id = @queue_id
          and b.message_id = @message_id;
        set @is_blocked = iif(@found_id is null, 0, 1);
    end try
    begin catch
        if error_number() <> 1222
            throw;
        set @is_blocked = 1;
    end catch;
end
go

create or alter procedure rowq.InternalResumeSuccessors
    @queue_id int,
    @predecessor_id bigint,
    @may_join bit
as
begin
-- purpose   Resume the messages that waited for this ended one; defer those that cannot resume now.
-- locks     successor rows; as InternalResumeBlocked; new deferred rows
    set nocount on;
    declare @most int = 1000, @count int, @ids nvarchar(max), @again nvarchar(max);
    declare @freed table (message_id bigint not null primary key);

    -- A skipped row is not committed, which happens only while the predecessor waits for the
    -- archiver, which then resumes it; or another session is resuming it.
    with head as (
        select top (@most) s.queue_id, s.predecessor_id, s.message_id
        from rowq.successor s with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where s.queue_id = @queue_id
          and s.predecessor_id = @predecessor_id
        order by s.message_id
    )
    delete from head
    output deleted.message_id
    into @freed (message_id)
    option (maxdop 1, keepfixed plan);
    set @count = @@rowcount;
    if @count = 0
        return;
    if @count = @most
        insert into rowq.deferred with (rowlock) (queue_id, due_at, deferred_id, predecessor_id)
        values (@queue_id, sysutcdatetime(), next value for rowq.message_seq, @predecessor_id);

    select @ids = N'[' + string_agg(cast(f.message_id as nvarchar(max)), N',') + N']'
    from @freed f;
    exec rowq.InternalResumeBlocked @queue_id, @ids, @predecessor_id, @may_join, @again output;
    if @again is not null
        insert into rowq.deferred with (rowlock) (queue_id, due_at, deferred_id, message_id)
        select @queue_id, sysutcdatetime(), next value for rowq.message_seq, cast(j.value as bigint)
        from openjson(@again) j
        option (maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalResumeBlocked
    @queue_id int,
    @message_ids nvarchar(max),
    @ended_id bigint,
    @may_join bit,
    @again nvarchar(max) output
as
begin
-- purpose   Resume blocked messages, or make them dead with a predecessor; return those to retry.
-- locks     as InternalUnblock and InternalPropagateDeaths
    set nocount on;
    declare @failed nvarchar(max);

    exec rowq.InternalUnblock
        @queue_id, @message_ids, @ended_id, @may_join, @again output, @failed output;
    if @failed is not null
        exec rowq.InternalPropagateDeaths @queue_id, null, @failed, @may_join;
end
go

create or alter procedure rowq.InternalRunDeferred
    @queue_id int,
    @limit int,
    @owns_transaction bit,
    @solved int output
as
begin
-- purpose   Run up to @limit deferred items; return how many succeeded in @solved.
-- locks     deferred rows, skipping locked ones; as the helpers that it calls
-- differs   in the caller's transaction it only passes slots on
    set nocount on;
    declare @floor bigint, @due_at datetime2(6), @now datetime2(6) = sysutcdatetime(),
        @deferred_id bigint, @waiting_id bigint, @predecessor_id bigint, @group_key varbinary(802),
        @is_hint bit, @group_limit int, @ids nvarchar(max), @again nvarchar(max),
        @message_id bigint, @lane smallint, @is_left bit, @is_done bit;
    declare @items table (
        due_at         datetime2(6) not null,
        deferred_id    bigint not null,
        message_id     bigint null,
        predecessor_id bigint null,
        group_key      varbinary(802) null,
        is_hint        bit not null,
        primary key (due_at, deferred_id)
    );
    declare @ready rowq.message_list;
    set @solved = 0;

    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.queue_id = @queue_id
      and l.lane = -4 /* deferred */;
    exec rowq.InternalFromMicroseconds @floor, @due_at output;
    insert into @items (due_at, deferred_id, message_id, predecessor_id, group_key, is_hint)
    select top (@limit) r.due_at, r.deferred_id, r.message_id, r.predecessor_id, r.group_key,
           r.is_hint
    from rowq.deferred r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where r.queue_id = @queue_id
      and r.due_at >= @due_at
      and r.due_at <= @now
    order by r.due_at, r.deferred_id
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        return;
    select @group_limit = q.group_limit
    from rowq.queue q with (forceseek)
    where q.queue_id = @queue_id;

    while 1 = 1
    begin
        select top (1) @due_at = n.due_at, @deferred_id = n.deferred_id,
               @waiting_id = n.message_id, @predecessor_id = n.predecessor_id,
               @group_key = n.group_key, @is_hint = n.is_hint
        from @items n
        order by n.due_at, n.deferred_id;
        if @@rowcount = 0
            break;
        delete from @items where due_at = @due_at and deferred_id = @deferred_id;

        set @is_done = 0;
        if @group_key is not null and @is_hint = 0
        begin
            exec rowq.InternalPassGroupSlot
                @queue_id, @group_key, @group_limit, @owns_transaction, @message_id output,
                @lane output, @is_left output;
            set @is_done = iif(@is_left = 1, 0, 1);
            if @message_id is not null
                insert into @ready (message_id, lane, place, attempt)
                values (@message_id, @lane, @solved, 0);
        end;
        else if @owns_transaction = 0
            continue;
        else if @group_key is not null
            exec rowq.InternalAddGroupSlots @queue_id, @group_limit, @group_key, @is_done output;
        else if @waiting_id = @predecessor_id
            exec rowq.InternalEndHeld @queue_id, @waiting_id, @is_done output;
        else if @waiting_id is not null
        begin
            set @ids = concat(N'[', @waiting_id, N']');
            exec rowq.InternalResumeBlocked
                @queue_id, @ids, null, @may_join = 1, @again = @again output;
            set @is_done = iif(@again is null, 1, 0);
        end;
        else if @is_hint = 1
            exec rowq.InternalRetryPropagation
                @queue_id, @predecessor_id, @may_join = 1, @is_done = @is_done output;
        else
        begin
            exec rowq.InternalResumeSuccessors @queue_id, @predecessor_id, @may_join = 1;
            set @is_done = 1;
        end;

        -- Leave unresolved rows unchanged: an idle producer transaction must not cause writes. Slow
        -- work is left to the next call.
        if @is_done = 1
        begin
            delete r
            from rowq.deferred r with (rowlock, forceseek)
            where r.queue_id = @queue_id
              and r.due_at = @due_at
              and r.deferred_id = @deferred_id
            option (maxdop 1, keepfixed plan);
            set @solved += 1;
        end;
        if datediff(millisecond, @now, sysutcdatetime()) > 500
            break;
    end;
    if exists (select 1 from @ready)
        exec rowq.InternalPushReady @queue_id, @ready;
end
go

create or alter procedure rowq.InternalRetryPropagation
    @queue_id int,
    @message_id bigint,
    @may_join bit,
    @is_done bit output
as
begin
-- purpose   Propagate a death again; @is_done is 0 if another session has locked the message.
-- locks     the message row, skipped if locked; as InternalPropagateDeaths
    set nocount on;
    declare @locked_id bigint, @ids nvarchar(max) = concat(N'[', @message_id, N']'),
        @state nvarchar(20), @predecessor_id bigint, @remaining_ids nvarchar(max);

    select @locked_id = m.message_id
    from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where m.queue_id = @queue_id
      and m.message_id = @message_id;
    if @locked_id is null
    begin
        -- It is gone, a producer is adding a successor, or it is being reset.
        exec rowq.InternalAwaitPredecessor
            @queue_id, @ids, null, @state output, @predecessor_id output, @remaining_ids output;
        set @is_done = iif(@state = N'free', 1, 0);
        return;
    end;

    -- If the message was reset, its successors wait as before.
    set @is_done = 1;
    if exists (
        select 1
        from rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
          and d.message_id = @message_id
    )
        exec rowq.InternalPropagateDeaths @queue_id, @ids, null, @may_join;
end
go

create or alter procedure rowq.InternalRefusePredecessors
    @messages nvarchar(max),
    @first_id bigint
as
begin
-- purpose   Refuse a batch, whose ids are above @first_id, if its predecessors are invalid.
-- errors    RQ711
    set nocount on;
    declare @error nvarchar(200);

    -- A value that is not an id counts as bad, and as 0 in the other aggregates: for a null in an
    -- aggregate the server sends a warning, which some drivers take for the result.
    select top (1) @error = concat(
        case
            when p.[key] = N'predecessor_positions'
                then N'predecessor_positions must be a list of earlier positions in the batch'
                    + N' before the message''s own'
            when h.members > 10000 or h.bad > 0
                then N'predecessor_ids must be a list of at most 10000 ids without nulls'
            else N'predecessor_ids must name existing messages'
        end,
        N' (message ', cast(e.[key] as int) + 1, N')'
    )
    from openjson(@messages) e
    cross apply openjson(e.value) p
    cross apply (
        select count(*) as members,
               sum(iif(i.[type] = 2 and try_cast(i.value as bigint) is not null, 0, 1)) as bad,
               min(coalesce(try_cast(i.value as bigint), 0)) as lowest,
               max(coalesce(try_cast(i.value as bigint), 0)) as newest
        from openjson(
            iif(
                p.[key] in (N'predecessor_ids', N'predecessor_positions') and p.[type] = 4,
                p.value, N'[]'
            )
        ) i
    ) h
    where h.members > 10000
       or h.bad > 0
       or p.[key] = N'predecessor_ids' and h.newest >= @first_id
       or p.[key] = N'predecessor_positions'
           and (h.lowest < 1 or h.newest > cast(e.[key] as int))
    order by cast(e.[key] as int);
    if @error is not null
        exec rowq.InternalRefuse @error;
end
go
