set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPromote
    @part_id int,
    @limit int,
    @owns_transaction bit,
    @promoted int output
as
begin
-- routine   InternalPromote
-- purpose   Move up to @limit due messages to the tails of their lanes, or into their groups, earliest first.
-- promise   P11 P21
-- locks     delayed rows, passing over locked ones; new ready rows; the lane of guests; as
--           InternalPromoteGrouped
-- differs   in the caller's transaction those that are to join a group are left to others
    set nocount on;
    declare @callers_lane smallint;
    declare @floor bigint;
    declare @since datetime2(6);
    declare @now datetime2(6) = sysutcdatetime();
    declare @first datetime2(6);
    declare @to bigint;
    declare @due_at datetime2(6);
    declare @message_id bigint = 0;
    declare @lane smallint;
    declare @group_key varbinary(802);
    declare @has_token bit;
    declare @due rowq.message_list;
    declare @moved table (
        due_at     datetime2(6) not null,
        message_id bigint not null,
        lane       smallint not null,
        attempt    smallint not null,
        group_key  varbinary(802) null,
        primary key (due_at, message_id)
    );

    -- A guest holds lane -22 shared to the end of the caller's transaction, so that no floor moves
    -- up past rows that a rollback would put back. @callers_lane only takes what this read returns.
    if @owns_transaction = 0
        select @callers_lane = l.lane
        from rowq.lane l with (rowlock, repeatableread, forceseek)
        where l.part_id = @part_id
          and l.lane = -22 /* callers */;
    select @floor = l.floor
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = -2 /* delayed */;
    exec rowq.InternalFromMicroseconds @floor, @since output;

    with head as (
        select top (@limit) d.part_id, d.due_at, d.message_id, d.lane, d.attempt, d.group_key
        from rowq.delayed d with (rowlock, xlock, readpast, readcommittedlock, forceseek)
        where d.part_id = @part_id
          and d.due_at >= @since
          and d.due_at <= @now
          and (@owns_transaction = 1 or d.group_key is null)
        order by d.due_at, d.message_id
    )
    delete from head
    output deleted.due_at, deleted.message_id, deleted.lane, deleted.attempt, deleted.group_key
    into @moved (due_at, message_id, lane, attempt, group_key)
    option (maxdop 1, keepfixed plan);
    set @promoted = @@rowcount;
    if @promoted = 0
        return;

    insert into @due (message_id, lane, place, attempt)
    select j.message_id, j.lane, datediff_big(microsecond, '19700101', j.due_at), j.attempt
    from @moved j
    where j.group_key is null;
    if @@rowcount < @promoted
    begin
        set @due_at = @since;
        while 1 = 1
        begin
            select top (1) @due_at = j.due_at, @message_id = j.message_id, @lane = j.lane,
                   @group_key = j.group_key
            from @moved j
            where j.due_at >= @due_at
              and (j.due_at > @due_at or j.message_id > @message_id)
              and j.group_key is not null
            order by j.due_at, j.message_id;
            if @@rowcount = 0
                break;
            exec rowq.InternalPromoteGrouped
                @part_id, @group_key, @message_id, @lane, @has_token output;
            if @has_token = 1
                insert into @due (message_id, lane, place, attempt)
                values (@message_id, @lane, datediff_big(microsecond, '19700101', @due_at), 0);
            if @has_token is null
                set @promoted -= 1;
        end;
    end;
    exec rowq.InternalPushReady @part_id, @due;

    -- Moving the floor costs a write, so only some calls do it. The floor moves up to the first
    -- message taken, but stays half a second behind now, because messages of the last moments may
    -- not be committed yet.
    if @owns_transaction = 1 and abs(cast(checksum(newid()) as bigint)) % 12 < @promoted
    begin
        select top (1) @first = j.due_at from @moved j order by j.due_at;
        if @first > dateadd(millisecond, -500, @now)
            set @first = dateadd(millisecond, -500, @now);
        set @to = datediff_big(microsecond, '19700101', @first);
        if @to > @floor
            exec rowq.InternalMoveFloor @part_id, -2 /* delayed */, @floor, @to;
    end;
end
go
