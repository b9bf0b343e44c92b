set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalLeaveGroups
    @part_id int,
    @messages rowq.message_list readonly,
    @may_close bit
as
begin
-- routine   InternalLeaveGroups
-- purpose   Pass on the tokens of messages that have ended, one for each; leave to maintain those that cannot be passed on now.
-- promise   P22 P23 P24
-- locks     as InternalPassGroup; new ready and recheck rows
    set nocount on;
    declare @group_limit int;
    declare @pause float;
    declare @place int = 0;
    declare @group_key varbinary(802);
    declare @message_id bigint;
    declare @lane smallint;
    declare @is_left bit;
    declare @turns table (
        place     int not null primary key,
        group_key varbinary(802) not null
    );
    declare @ready rowq.message_list;

    select @group_limit = q.group_limit, @pause = q.group_pause_seconds
    from rowq.queue q with (forceseek)
    where q.part_id = @part_id;
    if @pause > 0
    begin
        -- The group rests: maintain goes on when that is over.
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, group_key)
        select @part_id,
               dateadd(
                   microsecond, cast(round((@pause - floor(@pause)) * 1e6, 0) as int),
                   dateadd(second, cast(floor(@pause) as int), sysutcdatetime())
               ),
               next value for rowq.message_seq, j.group_key
        from @messages j
        option (maxdop 1, keepfixed plan);
        return;
    end;

    -- Several messages of one group may end at once where its limit is above 1: groups take turns.
    insert into @turns (place, group_key)
    select row_number() over (order by t.turn, t.group_key), t.group_key
    from (
        select j.group_key, row_number() over (
                   partition by j.group_key
                   order by j.message_id
               ) as turn
        from @messages j
    ) t;

    while 1 = 1
    begin
        set @place += 1;
        select @group_key = t.group_key from @turns t where t.place = @place;
        if @@rowcount = 0
            break;
        exec rowq.InternalPassGroup
            @part_id, @group_key, @group_limit, @may_close, @message_id output, @lane output,
            @is_left output;
        if @message_id is not null
            insert into @ready (message_id, lane, place, attempt)
            values (@message_id, @lane, @place, 0);
        if @is_left = 1
            insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, group_key)
            values (@part_id, sysutcdatetime(), next value for rowq.message_seq, @group_key);
    end;
    if exists (select 1 from @ready)
        exec rowq.InternalPushReady @part_id, @ready;
end
go
