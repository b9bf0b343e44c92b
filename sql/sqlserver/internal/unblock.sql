set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalUnblock
    @part_id int,
    @message_ids nvarchar(max),
    @ended_id bigint,
    @may_join bit,
    @again nvarchar(max) output,
    @failed nvarchar(max) output
as
begin
-- routine   InternalUnblock
-- purpose   Look again what blocked messages wait for, and let them go on where that is nothing. @again are the ids of those that need another look, @failed those that fail: [message_id, lane, the predecessor that is dead].
-- promise   P25 P26 P27
-- locks     blocked rows, tried only; as InternalTryUnblock; new ready rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @message_id bigint;
    declare @state nvarchar(20);
    declare @lane smallint;
    declare @dead_id bigint;
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
    -- What has been begun is finished first, so these go to the front of their priorities.
    delete b
    output deleted.message_id, deleted.lane / 2 * 2, 0, 0
    into @ready (message_id, lane, place, attempt)
    from @asked a
    inner join rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        on b.part_id = @part_id
       and b.message_id = a.message_id
    where b.predecessor_id = @ended_id
      and b.rest_ids is null
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
        -- A message may name ten thousand others, so leave what takes long to maintain.
        if datediff(millisecond, @now, sysutcdatetime()) > 200
        begin
            insert into @left (message_id)
            select a.message_id from @asked a;
            break;
        end;
        delete from @asked where message_id = @message_id;
        exec rowq.InternalTryUnblock
            @part_id, @message_id, @ended_id, @may_join, @state output, @lane output,
            @dead_id output;
        if @state = N'ready'
            insert into @ready (message_id, lane, place, attempt)
            values (@message_id, @lane, 0, 0);
        else if @state in (N'again', N'failed')
            insert into @left (message_id, lane, dead_id)
            values (@message_id, @lane, iif(@state = N'failed', @dead_id, null));
    end;
    if exists (select 1 from @ready)
        exec rowq.InternalPushReady @part_id, @ready;

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
