set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPopExpired
    @part_id int,
    @archive_days int,
    @due rowq.message_list readonly,
    @popped_ids nvarchar(max) output
as
begin
-- routine   InternalPopExpired
-- purpose   End those messages that nobody holds, which are at lane and place where they are ready; @popped_ids are their ids, null where there is none. Call it in a transaction of rowq's own.
-- promise   P03 P36
-- locks     message rows; blocked, delayed, grouped and ready rows, and a token of each group, all
--           of them tried only; then as InternalFinish
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
        with (rowlock, readpast, readcommittedlock, forceseek (message_pk (part_id, message_id)))
        on m.part_id = @part_id
       and m.message_id = j.message_id
    outer apply (
        select top (1) x.message_id
        from rowq.ready x
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (ready_pk (part_id, lane, seq, message_id))
            )
        where x.part_id = @part_id
          and x.lane = j.lane
          and x.seq = j.place
          and x.message_id = j.message_id
    ) r
    outer apply (
        select top (1) x.message_id
        from rowq.delayed x
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (delayed_pk (part_id, due_at, message_id))
            )
        where x.part_id = @part_id
          and x.due_at = m.due_at
          and x.message_id = j.message_id
    ) d
    outer apply (
        select top (1) x.message_id
        from rowq.blocked x
            with (
                rowlock, readpast, readcommittedlock, forceseek (blocked_pk (part_id, message_id))
            )
        where x.part_id = @part_id
          and x.message_id = j.message_id
    ) b
    outer apply (
        select top (1) x.message_id
        from rowq.grouped x
            with (
                rowlock, readpast, readcommittedlock,
                forceseek (grouped_pk (part_id, group_key, message_id))
            )
        where x.part_id = @part_id
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
            forceseek (message_pk (part_id, message_id))
        )
        on m.part_id = @part_id
       and m.message_id = f.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    delete b
    output deleted.message_id, deleted.lane, 0, 0, 1
    into @taken (message_id, lane, place, attempt, is_tokenless)
    from @held h
    inner join rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on b.part_id = @part_id
       and b.message_id = h.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete d
    output deleted.message_id, deleted.lane, 0, deleted.attempt,
           iif(deleted.group_key is null, 0, 1)
    into @taken (message_id, lane, place, attempt, is_tokenless)
    from @held h
    inner join rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on d.part_id = @part_id
       and d.due_at = h.due_at
       and d.message_id = h.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete r
    output deleted.message_id, deleted.lane, 0, deleted.attempt
    into @taken (message_id, lane, place, attempt)
    from @held h
    inner join rowq.ready r with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on r.part_id = @part_id
       and r.lane = h.lane
       and r.seq = h.seq
       and r.message_id = h.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- Before a message is taken out of its group, hold a token, so that nobody passes over it
    -- meanwhile: exclusively where that can be had, because below the group may have to be closed,
    -- or joined by what has waited for a message. A group of which no token can be had is left to
    -- the next maintain.
    insert into @groups (group_key)
    select distinct h.group_key
    from @held h
    inner join rowq.grouped x
        with (
            rowlock, readpast, readcommittedlock,
            forceseek (grouped_pk (part_id, group_key, message_id))
        )
        on x.part_id = @part_id
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
        from @held h
        inner join @groups g
            on g.group_key = h.group_key
           and g.is_exclusive is not null
        inner join rowq.grouped x with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on x.part_id = @part_id
           and x.group_key = h.group_key
           and x.message_id = h.message_id
        option (loop join, force order, maxdop 1, keepfixed plan);
    end;

    if not exists (select 1 from @taken)
        return;
    exec rowq.InternalFinish @part_id, @archive_days, @taken, N'expired', @may_close;
    select @popped_ids = N'[' + string_agg(cast(t.message_id as nvarchar(max)), N',') + N']'
    from @taken t;
end
go
