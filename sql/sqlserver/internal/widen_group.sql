set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalWidenGroup
    @part_id int,
    @group_limit int,
    @group_key varbinary(802),
    @is_done bit output
as
begin
-- routine   InternalWidenGroup
-- purpose   Give a group whose limit was raised its new tokens; @is_done is 0 where another look is needed. Call it in a transaction of rowq's own.
-- promise   P22 P24
-- locks     as InternalTryEnterGroup and InternalLeaveGroups
    set nocount on;
    declare @has_token bit = 1;
    declare @leaving rowq.message_list;

    insert into @leaving (message_id, lane, place, attempt, group_key)
    values (0, 0, 0, 0, @group_key);
    while @has_token = 1
        and exists (
            select 1
            from rowq.grouped g with (rowlock, readpast, readcommittedlock, forceseek)
            where g.part_id = @part_id
              and g.group_key = @group_key
        )
    begin
        exec rowq.InternalTryEnterGroup @part_id, @group_key, @group_limit, @has_token output;
        if @has_token = 1
            exec rowq.InternalLeaveGroups @part_id, @leaving, @may_close = 1;
    end;
    set @is_done = iif(@has_token is null, 0, 1);
end
go
