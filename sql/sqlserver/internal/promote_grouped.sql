set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPromoteGrouped
    @part_id int,
    @group_limit int,
    @group_key varbinary(802),
    @message_id bigint,
    @lane smallint,
    @has_token bit output
as
begin
-- routine   InternalPromoteGrouped
-- purpose   Let a due message join its group: with a token it is for the caller to make ready, with 0 it waits there, and with null it is delayed by another half second.
-- promise   P11 P21 P22
-- locks     as InternalTryEnterGroup; a message_group row, tried; new grouped or delayed rows
-- differs   no such helper on PostgreSQL: part of internal_promote
    set nocount on;
    declare @token_no smallint;
    declare @due_at datetime2(6) = dateadd(millisecond, 500, sysutcdatetime());

    exec rowq.InternalTryEnterGroup @part_id, @group_key, @group_limit, @has_token output;
    if @has_token = 1
        return;

    -- Hold a token to the end of the transaction: whoever would give the last one back knows by
    -- this that a message is coming.
    if @has_token = 0
    begin
        select top (1) @token_no = t.token_no
        from rowq.message_group t with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
        order by t.token_no
        option (maxdop 1, keepfixed plan);
        if @token_no is null
            set @has_token = null;
    end;

    if @has_token = 0
        insert into rowq.grouped with (rowlock) (part_id, group_key, message_id, lane)
        values (@part_id, @group_key, @message_id, @lane);
    else
    begin
        insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, group_key)
        values (@part_id, @due_at, @message_id, @lane, @group_key);
        update m
        set due_at = @due_at
        from rowq.message m with (rowlock, forceseek)
        where m.part_id = @part_id
          and m.message_id = @message_id
        option (maxdop 1);
    end;
end
go
