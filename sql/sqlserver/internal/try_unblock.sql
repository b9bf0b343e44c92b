set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTryUnblock
    @part_id int,
    @message_id bigint,
    @ended_id bigint,
    @may_join bit,
    @state nvarchar(20) output,
    @lane smallint output,
    @dead_id bigint output
as
begin
-- routine   InternalTryUnblock
-- purpose   Look again what a blocked message waits for: again, waiting, moved, gone, ready (in @lane), or failed with @dead_id. The last two are for the caller to put where they belong.
-- promise   P25 P26 P27
-- locks     the blocked row and the message row, tried only; as InternalAwaitPredecessor and
--           InternalTryJoinGroup; new successor and delayed rows
-- differs   PostgreSQL does it in internal_unblock
    set nocount on;
    declare @locked_id bigint;
    declare @predecessor_id bigint;
    declare @due_at datetime2(6);
    declare @on_dead nvarchar(20);
    declare @group_key varbinary(802);
    declare @rest_ids nvarchar(max);
    declare @ids nvarchar(max);
    declare @is_blocked bit;
    declare @has_token bit;
    set @state = N'free';
    set @dead_id = null;

    select @locked_id = b.message_id, @lane = b.lane, @predecessor_id = b.predecessor_id,
           @due_at = b.due_at, @on_dead = b.on_dead, @group_key = b.group_key,
           @rest_ids = b.rest_ids
    from rowq.blocked b with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where b.part_id = @part_id
      and b.message_id = @message_id;
    if @locked_id is null
    begin
        -- It is gone, or somebody is cancelling it.
        exec rowq.InternalIsBlocked @part_id, @message_id, @is_blocked output;
        set @state = iif(@is_blocked = 1, N'again', N'gone');
        return;
    end;

    if @predecessor_id = @ended_id
        set @predecessor_id = null;
    set @ids = N'[' + nullif(
        concat(
            @predecessor_id, iif(@predecessor_id is null or @rest_ids is null, N'', N','),
            substring(@rest_ids, 2, len(@rest_ids) - 2)
        ),
        N''
    ) + N']';
    if @ids is not null
        exec rowq.InternalAwaitPredecessor
            @part_id, @ids, @on_dead, @state output, @predecessor_id output, @rest_ids output;

    if @state = N'waiting'
    begin
        insert into rowq.successor with (rowlock) (part_id, predecessor_id, message_id, on_dead)
        select @part_id, @predecessor_id, @message_id, @on_dead
        where not exists (
            select 1
            from rowq.successor s with (rowlock, readcommittedlock, forceseek)
            where s.part_id = @part_id
              and s.predecessor_id = @predecessor_id
              and s.message_id = @message_id
        );
        update b
        set predecessor_id = @predecessor_id,
            rest_ids = @rest_ids
        from rowq.blocked b with (rowlock, forceseek)
        where b.part_id = @part_id
          and b.message_id = @message_id
        option (maxdop 1, keepfixed plan);
    end;
    else if @state = N'failed'
    begin
        -- Its row is to have the error, and a producer may be adding a message that waits for it.
        set @locked_id = null;
        select @locked_id = m.message_id
        from rowq.message m with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id;
        set @state = iif(@locked_id is null, N'again', N'failed');
        set @dead_id = @predecessor_id;
    end;
    else if @state = N'free' and @due_at > sysutcdatetime()
    begin
        insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, group_key)
        values (@part_id, @due_at, @message_id, @lane, @group_key);
        set @state = N'moved';
    end;
    else if @state = N'free' and @group_key is not null
    begin
        -- Groups take turns, so this one goes to the tail. A call that may not wait for a group
        -- leaves it to maintain.
        if @may_join = 1
            exec rowq.InternalTryJoinGroup
                @part_id, @group_key, @message_id, @lane, @has_token output;
        set @state = case @has_token when 1 then N'ready' when 0 then N'moved' else N'again' end;
    end;
    else
    begin
        -- What has been begun is finished first.
        set @lane = @lane / 2 * 2;
        set @state = iif(@state = N'free', N'ready', N'again');
    end;

    if @state in (N'moved', N'ready', N'failed')
        delete b
        from rowq.blocked b with (rowlock, forceseek)
        where b.part_id = @part_id
          and b.message_id = @message_id
        option (maxdop 1, keepfixed plan);
end
go
