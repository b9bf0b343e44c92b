set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFollowDeaths
    @part_id int,
    @message_ids nvarchar(max),
    @failed nvarchar(max),
    @may_join bit
as
begin
-- routine   InternalFollowDeaths
-- purpose   Let what waits for dead messages do as it asked. @failed are messages that fail, as InternalUnblock returns them, and are made dead first.
-- promise   P10 P12 P27 P32
-- locks     message rows, tried only; new dead and result rows; dedup rows; as InternalFollowDeath;
--           new recheck rows
    set nocount on;
    declare @most int = 1000;
    declare @count int = 0;
    declare @next nvarchar(max) = @failed;
    declare @dead_id bigint;
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
    declare @ties rowq.tie_list;
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
            insert into rowq.dead with (rowlock) (part_id, message_id, lane, attempt, died_at)
            select @part_id, f.message_id, f.lane, 0, sysutcdatetime()
            from @lost f
            option (maxdop 1, keepfixed plan);
            update m
            set last_error = concat(N'predecessor ', f.dead_id, N' is dead')
            from @lost f
            inner join rowq.message m with (rowlock, forceseek)
                on m.part_id = @part_id
               and m.message_id = f.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);
            delete from @ended;
            insert into @ended (message_id, lane, place, attempt)
            select f.message_id, f.lane, 0, 0 from @lost f;
            exec rowq.InternalPushResult @part_id, @ended, N'dead';
            delete from @ties;
            insert into @ties (message_id, dedup_key)
            select m.message_id, m.dedup_key
            from @lost f
            inner join rowq.message m with (forceseek (message_pk (part_id, message_id)))
                on m.part_id = @part_id
               and m.message_id = f.message_id
               and m.dedup_key is not null
            option (loop join, force order, maxdop 1, keepfixed plan);
            if @@rowcount > 0
                exec rowq.InternalCutTies @part_id, @ties, @may_join;
            delete from @dead;
            insert into @dead (message_id)
            select f.message_id from @lost f;
            set @count += @@rowcount;
        end;

        -- Where a row is locked, a producer is adding a message that waits: look again when it is
        -- there.
        delete from @held;
        insert into @held (message_id, is_awaited)
        select m.message_id, iif(s.predecessor_id is null, 0, 1)
        from @dead j
        inner join rowq.message m
            with (
                rowlock, xlock, readpast, readcommittedlock,
                forceseek (message_pk (part_id, message_id))
            )
            on m.part_id = @part_id
           and m.message_id = j.message_id
        outer apply (
            select top (1) x.predecessor_id
            from rowq.successor x
                with (
                    rowlock, readcommittedlock, forceseek (successor_pk (part_id, predecessor_id))
                )
            where x.part_id = @part_id
              and x.predecessor_id = m.message_id
        ) s
        option (loop join, force order, maxdop 1, keepfixed plan);
        insert into rowq.recheck with (rowlock)
            (part_id, due_at, recheck_id, predecessor_id, is_hint)
        select @part_id, sysutcdatetime(), next value for rowq.message_seq, j.message_id, 1
        from @dead j
        where not exists (select 1 from @held h where h.message_id = j.message_id)
        option (loop join, maxdop 1, keepfixed plan);

        -- A long tree dies in steps, so that no transaction grows without end.
        if @count > @most
        begin
            insert into rowq.recheck with (rowlock)
                (part_id, due_at, recheck_id, predecessor_id, is_hint)
            select @part_id, sysutcdatetime(), next value for rowq.message_seq, h.message_id, 1
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
            exec rowq.InternalFollowDeath @part_id, @dead_id, @may_join, @next output;
        end;
        if @next is null
            return;
    end;
end
go
