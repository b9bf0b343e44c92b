set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalJoinGroups
    @part_id int,
    @group_limit int,
    @messages rowq.message_list readonly
as
begin
-- routine   InternalJoinGroups
-- purpose   Let messages join their groups: one that gets a token is ready, with its place as seq, and so is one without a group; the others wait.
-- promise   P21 P22
-- locks     as InternalEnterGroup, in the order of the keys; new ready and grouped rows
-- differs   elsewhere the caller makes messages ready
    set nocount on;
    declare @turn int = 0;
    declare @group_key varbinary(802);
    declare @full_key varbinary(802) = 0x;
    declare @has_token bit;
    declare @joining table (
        turn       int not null primary key,
        message_id bigint not null,
        group_key  varbinary(802) not null,
        has_token  bit not null
    );

    insert into @joining (turn, message_id, group_key, has_token)
    select row_number() over (order by j.group_key, j.message_id), j.message_id, j.group_key, 0
    from @messages j
    where j.group_key is not null;

    while 1 = 1
    begin
        set @turn += 1;
        select @group_key = j.group_key from @joining j where j.turn = @turn;
        if @@rowcount = 0
            break;
        -- A group that is full stays so until the end of this transaction.
        if @group_key = @full_key
            continue;
        exec rowq.InternalEnterGroup @part_id, @group_key, @group_limit, @has_token output;
        if @has_token = 1
            update @joining set has_token = 1 where turn = @turn;
        else
            set @full_key = @group_key;
    end;

    insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id, attempt)
    select @part_id, j.lane, j.place, j.message_id, j.attempt
    from @messages j
    where not exists (
              select 1
              from @joining w
              where w.message_id = j.message_id
                and w.has_token = 0
          )
    option (hash join, maxdop 1, keepfixed plan);
    insert into rowq.grouped with (rowlock) (part_id, group_key, message_id, lane)
    select @part_id, w.group_key, w.message_id, j.lane
    from @joining w
    inner join @messages j on j.message_id = w.message_id
    where w.has_token = 0
    option (loop join, force order, maxdop 1, keepfixed plan);
end
go
