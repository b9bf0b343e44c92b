set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTryEnterGroup
    @part_id int,
    @group_key varbinary(802),
    @group_limit int,
    @has_token bit output
as
begin
-- routine   InternalTryEnterGroup
-- purpose   Take a token of a group: @has_token is 0 where it is full, and null where a producer is opening it, or the limit was lowered meanwhile. Call it in a transaction of rowq's own.
-- promise   P22
-- locks     a new message_group row
-- differs   elsewhere it waits for a producer for a moment, and holds the tokens of a full group
    set nocount on;
    -- The insert below waits for a session that is closing the group at this moment, and for a
    -- producer who has opened it after the look. If either takes longer, error 1222 ends this
    -- transaction, which starts again and sees by then what is going on.
    set lock_timeout 100;
    declare @tokens int;
    declare @token_no int;
    declare @seen int;
    set @has_token = null;

    select @tokens = count(*), @token_no = min(iif(t.token_no = t.place, 32767, t.place))
    from (
        select x.token_no, row_number() over (order by x.token_no) as place
        from rowq.message_group x with (rowlock, readpast, readcommittedlock, forceseek)
        where x.part_id = @part_id
          and x.group_key = @group_key
    ) t
    option (maxdop 1, keepfixed plan);
    if @tokens >= @group_limit
    begin
        set @has_token = 0;
        return;
    end;

    -- A dirty read sees the token of an open producer, too, which the look has passed over.
    select @seen = count(*)
    from rowq.message_group x with (readuncommitted, forceseek)
    where x.part_id = @part_id
      and x.group_key = @group_key
    option (maxdop 1, keepfixed plan);
    if @seen > @tokens
        return;

    set @token_no = iif(@token_no < 32767, @token_no, @tokens + 1);
    insert into rowq.message_group with (rowlock) (part_id, group_key, token_no)
    values (@part_id, @group_key, @token_no);
    if @@rowcount = 0
        return;

    -- That may have waited, so what counts is the limit that is read after it. Any leaves room for
    -- one.
    if @group_limit > 1
        and @group_limit > (
            select q.group_limit
            from rowq.queue q with (forceseek)
            where q.part_id = @part_id
        )
        delete from rowq.message_group with (rowlock)
        where part_id = @part_id
          and group_key = @group_key
          and token_no = @token_no;
    else
        set @has_token = 1;
end
go
