set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalEnterGroup
    @part_id int,
    @group_key varbinary(802),
    @group_limit int,
    @has_token bit output
as
begin
-- routine   InternalEnterGroup
-- purpose   Take a token of a group: @has_token is 0 where the message has to wait behind others.
-- promise   P21 P22 P24
-- locks     a new message_group row, or the group's, shared; waits for who opens or closes it
    set nocount on;
    declare @newest_limit int;
    declare @tokens int;
    declare @token_no int;
    declare @is_full bit;

    while 1 = 1
    begin
        -- This look waits for a session that is opening or closing the group. A number that differs
        -- from its place in the order has a gap before it.
        select @tokens = count(*), @token_no = min(iif(t.token_no = t.place, 32767, t.place))
        from (
            select x.token_no, row_number() over (order by x.token_no) as place
            from rowq.message_group x with (rowlock, readcommittedlock, forceseek)
            where x.part_id = @part_id
              and x.group_key = @group_key
        ) t
        option (maxdop 1, keepfixed plan);

        set @is_full = iif(@tokens < @group_limit, 0, 1);
        if @is_full = 0
        begin
            -- Take the first free number. The count keeps a limit that was lowered. If another
            -- session takes the number meanwhile, this inserts no row (ignore_dup_key): look again.
            set @token_no = iif(@token_no < 32767, @token_no, @tokens + 1);
            insert into rowq.message_group with (rowlock) (part_id, group_key, token_no)
            values (@part_id, @group_key, @token_no);
            set @has_token = @@rowcount;
            -- Any limit leaves room for one.
            if @has_token = 1 and @group_limit = 1
                break;
        end;
        else
        begin
            -- Hold the tokens shared to the end of the transaction (repeatableread): whoever would
            -- give the last one back knows by this that a message is coming. If one was given back
            -- before this had it, look again.
            select @tokens = count(*)
            from rowq.message_group x with (rowlock, repeatableread, forceseek)
            where x.part_id = @part_id
              and x.group_key = @group_key
            option (maxdop 1, keepfixed plan);
            set @has_token = 0;
        end;

        -- Each of these may have waited, and an AlterQueue that has come meanwhile does not see
        -- this message. So what counts is the limit that is read after them.
        select @newest_limit = q.group_limit
        from rowq.queue q with (forceseek)
        where q.part_id = @part_id;
        if @has_token = 1 and @newest_limit >= @group_limit
            or @is_full = 1 and @tokens >= @newest_limit
            break;
        if @has_token = 1
            delete from rowq.message_group with (rowlock)
            where part_id = @part_id
              and group_key = @group_key
              and token_no = @token_no;
        set @group_limit = @newest_limit;
    end;
end
go
