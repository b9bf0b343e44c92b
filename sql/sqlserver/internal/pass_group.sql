set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPassGroup
    @part_id int,
    @group_key varbinary(802),
    @group_limit int,
    @may_close bit,
    @message_id bigint output,
    @lane smallint output,
    @is_left bit output
as
begin
-- routine   InternalPassGroup
-- purpose   Pass one token of a group on to its next message, which is for the caller to make ready, or give it back; @is_left is 1 where nothing can be done now.
-- promise   P21 P22 P23 P24
-- locks     message_group and grouped rows, passing over locked ones
    set nocount on;
    declare @token_no smallint;
    declare @locked int = 0;
    declare @seen int;
    set @message_id = null;
    set @is_left = 0;

    -- Lock a token exclusively, so that nobody is coming or withdrawing a message. Only rowq's own
    -- transactions do that, which are short, because a producer that comes waits for this lock.
    if @may_close = 1
        select top (1) @token_no = t.token_no, @locked = 1
        from rowq.message_group t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
        order by t.token_no desc
        option (maxdop 1, keepfixed plan);
    -- Producers that are coming share this lock. Two that take messages out of one group of one do
    -- not, so none is overtaken by the next one while it may come back by a rollback.
    if @token_no is null
        select top (1) @token_no = t.token_no
        from rowq.message_group t with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
        order by t.token_no desc
        option (maxdop 1, keepfixed plan);
    if @token_no is null
    begin
        set @is_left = 1;
        return;
    end;

    if @token_no > @group_limit
        and exists (
            select 1
            from rowq.message_group t with (rowlock, readpast, readcommittedlock, forceseek)
            where t.part_id = @part_id
              and t.group_key = @group_key
              and t.token_no <= @group_limit
        )
    begin
        -- A token beyond a limit that was lowered is given back: the lowest one that can be had.
        set @is_left = iif(@locked = 1, 0, 1);
        if @is_left = 1
            return;
        select top (1) @token_no = t.token_no
        from rowq.message_group t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
          and t.token_no > @group_limit
        order by t.token_no
        option (maxdop 1, keepfixed plan);
        delete t
        from rowq.message_group t with (rowlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
          and t.token_no = @token_no
        option (maxdop 1, keepfixed plan);
        return;
    end;

    while 1 = 1
    begin
        -- What this passes over is not committed yet, or another session passes it on. It takes an
        -- update lock, which waits for a reader in the delete, because a row that a reader keeps
        -- locked must not be overtaken.
        select top (1) @message_id = g.message_id, @lane = g.lane
        from rowq.grouped g with (rowlock, updlock, readpast, readcommittedlock, forceseek)
        where g.part_id = @part_id
          and g.group_key = @group_key
        order by g.message_id
        option (maxdop 1, keepfixed plan);
        if @message_id is not null
        begin
            delete g
            from rowq.grouped g with (rowlock, forceseek)
            where g.part_id = @part_id
              and g.group_key = @group_key
              and g.message_id = @message_id
            option (maxdop 1, keepfixed plan);
            return;
        end;
        if @locked = 0
        begin
            set @is_left = 1;
            return;
        end;

        -- Nobody waits. Where all tokens are locked exclusively, nobody is coming either: give one
        -- back, if the look above has come after the locks. Else look once more.
        select @seen = count(*)
        from rowq.message_group t with (rowlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
        option (maxdop 1, keepfixed plan);
        if @seen <= @locked
            break;
        select @locked = count(*)
        from rowq.message_group t with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where t.part_id = @part_id
          and t.group_key = @group_key
        option (maxdop 1, keepfixed plan);
        if @locked < @seen
        begin
            set @is_left = 1;
            return;
        end;
    end;

    delete t
    from rowq.message_group t with (rowlock, forceseek)
    where t.part_id = @part_id
      and t.group_key = @group_key
      and t.token_no = @token_no
    option (maxdop 1, keepfixed plan);
end
go
