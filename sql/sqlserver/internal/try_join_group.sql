set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTryJoinGroup
    @part_id int,
    @group_key varbinary(802),
    @message_id bigint,
    @lane smallint,
    @has_token bit output
as
begin
-- routine   InternalTryJoinGroup
-- purpose   Let a message join its group: with a token it is for the caller to make ready, with 0 it waits there, and null is undecided. Call it in a transaction of rowq's own.
-- promise   P21 P22
-- locks     as InternalTryEnterGroup; a message_group row, tried; a new grouped row
-- differs   no such helper elsewhere: there whoever enters a group that is full holds its tokens
    set nocount on;
    declare @group_limit int;
    declare @token_no smallint;

    select @group_limit = q.group_limit
    from rowq.queue q with (forceseek)
    where q.part_id = @part_id;
    exec rowq.InternalTryEnterGroup @part_id, @group_key, @group_limit, @has_token output;
    if @has_token = 1 or @has_token is null
        return;

    -- Hold a token to the end of the transaction: whoever would give the last one back knows by
    -- this that a message is coming.
    select top (1) @token_no = t.token_no
    from rowq.message_group t with (rowlock, updlock, readpast, readcommittedlock, forceseek)
    where t.part_id = @part_id
      and t.group_key = @group_key
    order by t.token_no
    option (maxdop 1, keepfixed plan);
    if @token_no is null
        set @has_token = null;
    else
        insert into rowq.grouped with (rowlock) (part_id, group_key, message_id, lane)
        values (@part_id, @group_key, @message_id, @lane);
end
go
