set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalHintGroups
    @part_id int
as
begin
-- routine   InternalHintGroups
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- promise   P24
-- locks     new recheck rows
    set nocount on;
    declare @group_key varbinary(802) = 0x;

    -- Go from group to group and not from message to message.
    while 1 = 1
    begin
        select top (1) @group_key = g.group_key
        from rowq.grouped g with (rowlock, readpast, readcommittedlock, forceseek)
        where g.part_id = @part_id
          and g.group_key > @group_key
        order by g.group_key, g.message_id
        option (maxdop 1, keepfixed plan);
        if @@rowcount = 0
            break;
        insert into rowq.recheck with (rowlock) (part_id, due_at, recheck_id, group_key, is_hint)
        values (@part_id, sysutcdatetime(), next value for rowq.message_seq, @group_key, 1);
    end;
end
go
