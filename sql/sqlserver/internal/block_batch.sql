set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalBlockBatch
    @part_id int,
    @messages nvarchar(max),
    @new rowq.new_list readonly
as
begin
-- routine   InternalBlockBatch
-- purpose   Let new messages of a batch wait for their predecessors, or fail with them; those that wait for none are left to the caller.
-- promise   P25 P26 P27
-- locks     as InternalAwaitPredecessor and InternalBlock
    set nocount on;
    declare @may_fail bit = 0;
    declare @message_id bigint = 0;
    declare @lane smallint;
    declare @due_at datetime2(6);
    declare @group_key varbinary(802);
    declare @on_dead nvarchar(20);
    declare @predecessor_ids nvarchar(max);
    declare @state nvarchar(20);
    declare @predecessor_id bigint;
    declare @rest_ids nvarchar(max);
    declare @edges table (
        message_id     bigint not null,
        predecessor_id bigint not null,
        primary key (message_id, predecessor_id)
    );
    -- own_id is the newest predecessor where that is a new message of this batch.
    declare @waiting table (
        message_id bigint not null primary key,
        lane       smallint not null,
        due_at     datetime2(6) null,
        group_key  varbinary(802) null,
        on_dead    nvarchar(20) collate Latin1_General_100_BIN2 null,
        own_id     bigint null
    );

    -- A duplicate stands for the message that has its key.
    insert into @edges (message_id, predecessor_id)
    select distinct n.message_id, coalesce(h.holder, cast(i.value as bigint))
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
       and n.holder = n.message_id
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
       and o.holder = o.message_id
    option (hash join, maxdop 1, keepfixed plan);

    -- Nobody else sees a predecessor of this batch, so it can only have failed with another one.
    select @may_fail = 1 from @waiting w where w.own_id is null and w.on_dead = N'fail';
    if @may_fail = 0
    begin
        insert into rowq.successor with (rowlock) (part_id, predecessor_id, message_id, on_dead)
        select @part_id, w.own_id, w.message_id, w.on_dead
        from @waiting w
        where w.own_id is not null
        option (maxdop 1, keepfixed plan);
        insert into rowq.blocked with (rowlock) (
            part_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, rest_ids
        )
        select @part_id, w.message_id, w.lane, w.own_id, w.due_at, w.on_dead, w.group_key, r.ids
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
            @part_id, @predecessor_ids, @on_dead, @state output, @predecessor_id output,
            @rest_ids output;
        if @state <> N'free'
            exec rowq.InternalBlock
                @part_id, @message_id, @lane, @due_at, @group_key, @on_dead, @state,
                @predecessor_id, @rest_ids;
    end;
end
go
