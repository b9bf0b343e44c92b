set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalArchive
    @part_id int,
    @limit int,
    @archived int output
as
begin
-- routine   InternalArchive
-- purpose   Move up to @limit finished messages to the archive, oldest first.
-- promise   P19 P26
-- locks     finished rows, passing over locked ones; lane -3; message rows, tried only; new
--           archive rows; as InternalFreeSuccessors
    set nocount on;
    declare @floor bigint;
    declare @is_open bit;
    declare @since datetime2(6);
    declare @awaited_id bigint = 0;
    declare @moved table (
        message_id  bigint not null primary key,
        finished_at datetime2(6) not null,
        lane        smallint not null,
        attempt     smallint not null,
        state       nvarchar(20) collate Latin1_General_100_BIN2 not null
    );
    declare @held table (
        message_id bigint not null primary key,
        is_awaited bit not null
    );

    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -3 /* finished */;
    exec rowq.InternalFromMicroseconds @floor, @since output;

    -- A guest's call that is broken off between these statements leaves a row of finished, and the
    -- next one does the rest: the archive passes over what it has already (ignore_dup_key).
    insert into @moved (message_id, finished_at, lane, attempt, state)
    select top (@limit) f.message_id, f.finished_at, f.lane, f.attempt, f.state
    from rowq.finished f with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where f.part_id = @part_id
      and f.finished_at >= @since
    order by f.finished_at, f.message_id
    option (maxdop 1, keepfixed plan);
    set @archived = @@rowcount;
    if @archived = 0
        return;

    -- Leave a message alone while a producer is adding one that waits for it.
    insert into @held (message_id, is_awaited)
    select m.message_id, iif(s.predecessor_id is null, 0, 1)
    from @moved j
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
            with (rowlock, readcommittedlock, forceseek (successor_pk (part_id, predecessor_id)))
        where x.part_id = @part_id
          and x.predecessor_id = m.message_id
    ) s
    option (loop join, force order, maxdop 1, keepfixed plan);
    if @@rowcount < @archived
    begin
        delete j
        from @moved j
        inner join rowq.message m with (forceseek (message_pk (part_id, message_id)))
            on m.part_id = @part_id
           and m.message_id = j.message_id
        where not exists (select 1 from @held h where h.message_id = j.message_id)
        option (loop join, force order, maxdop 1, keepfixed plan);
        select @archived = count(*) from @moved;
        if @archived = 0
            return;
    end;

    -- This lane is open while the queue may have archived messages, and this lock keeps maintain from
    -- closing it before this transaction ends.
    select @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -3 /* finished */;
    -- Of two sessions that hold the row shared neither could open the lane, so whoever may have to
    -- open it takes the row for itself at once.
    if @is_open = 1
        select @is_open = l.is_open
        from rowq.lane l with (rowlock, repeatableread, forceseek)
        where l.part_id = @part_id
          and l.lane = -3 /* finished */;
    if @is_open = 0
        update rowq.lane with (rowlock)
        set is_open = 1
        where part_id = @part_id
          and lane = -3 /* finished */;

    insert into rowq.archived with (rowlock) (
        part_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
        dedup_key, headers, body, body_binary, group_key
    )
    select @part_id, j.finished_at, j.message_id, j.lane, j.attempt, m.enqueued_at, j.state,
           m.message_type, m.dedup_key, m.headers, m.body, m.body_binary, m.group_key
    from @moved j
    inner join rowq.message m with (forceseek (message_pk (part_id, message_id)))
        on m.part_id = @part_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete m
    from @moved j
    inner join rowq.message m with (rowlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);
    delete f
    from @moved j
    inner join rowq.finished f with (rowlock, forceseek)
        on f.part_id = @part_id
       and f.finished_at = j.finished_at
       and f.message_id = j.message_id
    option (loop join, force order, maxdop 1, keepfixed plan);

    -- The end of a message did not see what its producer had not committed then.
    while 1 = 1
    begin
        select top (1) @awaited_id = h.message_id
        from @held h
        where h.message_id > @awaited_id
          and h.is_awaited = 1
        order by h.message_id;
        if @@rowcount = 0
            break;
        exec rowq.InternalFreeSuccessors @part_id, @awaited_id, @may_join = 0;
    end;
end
go
