set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalWithdraw
    @part_id int,
    @archive_days int,
    @message_ids nvarchar(max),
    @owns_transaction bit,
    @cancelled_ids nvarchar(max) output
as
begin
-- routine   InternalWithdraw
-- purpose   Cancel those messages that no worker holds; @cancelled_ids are their ids, null where there is none.
-- promise   P03 P12 P22
-- locks     blocked, delayed, dead and ready rows, passing over locked ones; message rows; then a
--           token of each group and grouped rows, tried; then as InternalFinish
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
    into @taken (message_id, lane, place, attempt, is_tokenless)
    from @ids j
    inner join rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on b.part_id = @part_id
       and b.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete d
    output deleted.message_id, deleted.lane, 0, deleted.attempt,
           iif(deleted.holds_group = 1, 0, 1)
    into @taken (message_id, lane, place, attempt, is_tokenless)
    from @ids j
    inner join rowq.dead d with (rowlock, readpast, readcommittedlock, forceseek)
        on d.part_id = @part_id
       and d.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- Find a delayed message by message.due_at, which is its place in delayed.
    delete d
    output deleted.message_id, deleted.lane, 0, deleted.attempt,
           iif(deleted.group_key is null, 0, 1)
    into @taken (message_id, lane, place, attempt, is_tokenless)
    from @ids j
    inner join rowq.message m
        with (rowlock, readpast, readcommittedlock, forceseek (message_pk (part_id, message_id)))
        on m.part_id = @part_id
       and m.message_id = j.message_id
    inner join rowq.delayed d with (rowlock, readpast, readcommittedlock, forceseek)
        on d.part_id = @part_id
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
        with (rowlock, readpast, readcommittedlock, forceseek (message_pk (part_id, message_id)))
        on m.part_id = @part_id
       and m.message_id = j.message_id
    inner join rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
        on r.part_id = @part_id
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
                rowlock, readpast, readcommittedlock, forceseek (message_pk (part_id, message_id))
            )
        where m.part_id = @part_id
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
                rowlock, readpast, readcommittedlock, forceseek (message_pk (part_id, message_id))
            )
            on m.part_id = @part_id
           and m.message_id = j.message_id
           and m.group_key is not null
        inner join rowq.grouped x
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (grouped_pk (part_id, group_key, message_id))
            )
            on x.part_id = @part_id
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
            where l.part_id = @part_id
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
            where r.part_id = @part_id
            option (hash join, force order, maxdop 1, keepfixed plan);
        delete r
        output deleted.message_id, deleted.lane, 0, deleted.attempt
        into @taken (message_id, lane, place, attempt)
        from @ready j
        inner join rowq.ready r with (rowlock, readpast, readcommittedlock, forceseek)
            on r.part_id = @part_id
           and r.lane = j.lane
           and r.seq = j.seq
           and r.message_id = j.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @count = 0
            break;

        -- Lock what is to end before the tokens of its groups. A producer that has just named one
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
                with (rowlock, xlock, forceseek (message_pk (part_id, message_id)))
                on m.part_id = @part_id
               and m.message_id = j.message_id
            option (loop join, force order, maxdop 1, keepfixed plan);

        -- Before a message is taken out of its group, hold a token, so that nobody passes over it
        -- meanwhile. A transaction of its own locks that exclusively where it can, because below it
        -- may have to give back the token of another message. A group of which no token can be had
        -- is left alone, and its message counts as leased.
        insert into @groups (group_key)
        select distinct w.group_key from @waiting w;
        if @owns_transaction = 1
            update g
            set is_exclusive = 1
            from @groups g
            cross apply (
                select top (1) t.token_no
                from rowq.message_group t
                    with (
                        rowlock, xlock, readpast, readcommittedlock,
                        forceseek (message_group_pk (part_id, group_key))
                    )
                where t.part_id = @part_id
                  and t.group_key = g.group_key
                order by t.token_no
            ) t
            option (loop join, force order, maxdop 1, keepfixed plan);
        update g
        set is_exclusive = 0
        from @groups g
        cross apply (
            select top (1) t.token_no
            from rowq.message_group t
                with (
                    rowlock, updlock, readpast, readcommittedlock,
                    forceseek (message_group_pk (part_id, group_key))
                )
            where t.part_id = @part_id
              and t.group_key = g.group_key
            order by t.token_no
        ) t
        where g.is_exclusive is null
        option (loop join, force order, maxdop 1, keepfixed plan);
        if @@rowcount > 0
            set @may_close = 0;
        delete x
        output deleted.message_id, deleted.lane, 0, 0, 1
        into @taken (message_id, lane, place, attempt, is_tokenless)
        from @waiting w
        inner join @groups g
            on g.group_key = w.group_key
           and g.is_exclusive is not null
        inner join rowq.grouped x with (rowlock, readpast, readcommittedlock, forceseek)
            on x.part_id = @part_id
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
    exec rowq.InternalFinish @part_id, @archive_days, @taken, N'cancelled', @may_close;
    select @cancelled_ids = N'[' + string_agg(cast(t.message_id as nvarchar(max)), N',') + N']'
    from @taken t;
end
go
