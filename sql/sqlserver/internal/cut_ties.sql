set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCutTies
    @part_id int,
    @ties rowq.tie_list readonly,
    @may_close bit
as
begin
-- routine   InternalCutTies
-- purpose   Free what messages had, now that they have ended: dedup keys, tokens of groups, and messages that have waited for them.
-- promise   P12 P22 P26
-- locks     dedup rows; as InternalLeaveGroups and InternalFreeSuccessors; new recheck rows
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @awaited_id bigint = 0;
    declare @leaving rowq.message_list;

    delete k
    from @ties j
    inner join rowq.dedup k with (rowlock, forceseek)
        on k.part_id = @part_id
       and k.dedup_key = convert(varbinary(802), j.dedup_key + N'.')
       and k.message_id = j.message_id
    where j.dedup_key is not null
    option (loop join, force order, maxdop 1, keepfixed plan);

    insert into @leaving (message_id, lane, place, attempt, group_key)
    select j.message_id, 0, 0, 0, convert(varbinary(802), j.group_key + N'.')
    from @ties j
    where j.group_key is not null;
    if @@rowcount > 0
        exec rowq.InternalLeaveGroups @part_id, @leaving, @may_close;

    while 1 = 1
    begin
        select top (1) @awaited_id = j.message_id
        from @ties j
        where j.message_id > @awaited_id
          and j.is_awaited = 1
        order by j.message_id;
        if @@rowcount = 0
            break;
        -- Many messages may have ended, each with a thousand others that wait: leave what takes
        -- long to maintain.
        if datediff(millisecond, @now, sysutcdatetime()) > 500
        begin
            insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, predecessor_id)
            select @part_id, sysutcdatetime(), next value for rowq.message_seq, j.message_id
            from @ties j
            where j.message_id >= @awaited_id
              and j.is_awaited = 1
            option (maxdop 1, keepfixed plan);
            break;
        end;
        exec rowq.InternalFreeSuccessors @part_id, @awaited_id, @may_close;
    end;
end
go
