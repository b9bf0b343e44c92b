set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalExpire
    @part_id int,
    @archive_days int,
    @limit int,
    @expired int output
as
begin
-- routine   InternalExpire
-- purpose   Withdraw messages whose time has come, until @limit is passed; return how many there were. Call it in a transaction of rowq's own.
-- promise   P13 P36
-- locks     as InternalPopExpired; expiry rows, passing over locked ones
    set nocount on;
    -- In milliseconds, that of InternalRescanFloors.
    declare @long_walk int = 20;
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
    declare @unplaced_ids nvarchar(max);
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
    where l.part_id = @part_id
      and l.lane = -6 /* expiry */;
    exec rowq.InternalFromMicroseconds @floor, @since output;
    while @seen < @most_seen and @expired < @limit
    begin
        insert into @notes (expires_at, expiry_id, message_id, lane, seq)
        select top (@step_size) e.expires_at, e.expiry_id, e.message_id, e.lane, e.seq
        from rowq.expiry e with (rowlock, readpast, readcommittedlock, forceseek)
        where e.part_id = @part_id
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
                rowlock, readpast, readcommittedlock, forceseek (message_pk (part_id, message_id))
            )
            on m.part_id = @part_id
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
                on e.part_id = @part_id
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
        exec rowq.InternalPopExpired @part_id, @archive_days, @due, @popped_ids output;
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
            exec rowq.InternalUnplacedOf @part_id, @rest, @unplaced_ids output;
            insert into @done (message_id)
            select cast(j.value as bigint) from openjson(@unplaced_ids) j;
        end;
        delete e
        from @notes n
        inner join @done o on o.message_id = n.message_id
        inner join rowq.expiry e with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on e.part_id = @part_id
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
            or datediff_big(millisecond, @started, sysutcdatetime()) > @long_walk
        )
        and exists (select 1 from @kept)
        update e
        set expires_at = @now
        from @kept k
        inner join rowq.expiry e with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            on e.part_id = @part_id
           and e.expires_at = k.expires_at
           and e.expiry_id = k.expiry_id
        option (loop join, force order, maxdop 1, keepfixed plan);
end
go
