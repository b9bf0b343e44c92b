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
-- promise   P19
-- locks     finished rows, passing over locked ones; message rows; new archive rows
    set nocount on;
    declare @floor bigint;
    declare @since datetime2(6);
    declare @moved table (
        message_id  bigint not null primary key,
        finished_at datetime2(6) not null,
        lane        smallint not null,
        attempt     smallint not null,
        state       nvarchar(20) collate Latin1_General_100_BIN2 not null
    );

    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -3;
    exec rowq.InternalFromMicroseconds @floor, @since output;

    with head as (
        select top (@limit) f.part_id, f.finished_at, f.message_id, f.lane, f.attempt, f.state
        from rowq.finished f with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where f.part_id = @part_id
          and f.finished_at >= @since
        order by f.finished_at, f.message_id
    )
    delete from head
    output deleted.message_id, deleted.finished_at, deleted.lane, deleted.attempt, deleted.state
    into @moved (message_id, finished_at, lane, attempt, state)
    option (maxdop 1, keepfixed plan);
    set @archived = @@rowcount;
    if @archived = 0
        return;

    insert into rowq.archived with (rowlock) (
        part_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
        dedup_key, headers, body, body_binary
    )
    select @part_id, j.finished_at, j.message_id, j.lane, j.attempt, m.enqueued_at, j.state,
           m.message_type, m.dedup_key, m.headers, m.body, m.body_binary
    from @moved j
    inner join rowq.message m with (forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1);
    delete m
    from @moved j
    inner join rowq.message m with (rowlock, forceseek)
        on m.part_id = @part_id
       and m.message_id = j.message_id
    option (loop join, force order, maxdop 1);
end
go
