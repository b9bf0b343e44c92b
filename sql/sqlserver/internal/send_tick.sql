set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalSendTick
    @part_id int,
    @schedule_key varbinary(402),
    @tick datetime2(6),
    @message_id bigint output,
    @outcome nvarchar(20) output
as
begin
-- routine   InternalSendTick
-- purpose   Add the message of a schedule to its queue; the outcome is enqueue's.
-- promise   P12 P21 P22 P30
-- locks     new rows; with a group key, and without overlap, waits as enqueue does
-- differs   elsewhere it calls enqueue, whose rows would come out of maintain here
    set nocount on;
    declare @now datetime2(6);
    declare @lane smallint;
    declare @is_open bit;
    declare @group_limit int;
    declare @group_key varbinary(802);
    declare @has_token bit = 1;
    declare @dedup_key nvarchar(400);
    declare @holder bigint;
    declare @schedule_name nvarchar(200);
    declare @headers nvarchar(max);
    declare @tick_headers nvarchar(max);

    select @lane = s.priority * 2 + 1, @group_limit = q.group_limit,
           @group_key = convert(varbinary(802), s.group_key + N'.'),
           @dedup_key = iif(s.overlap = 1, null, N'schedule:' + s.schedule_name),
           @schedule_name = s.schedule_name, @headers = s.headers
    from rowq.schedule s with (forceseek)
    inner join rowq.queue q on q.part_id = s.part_id
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (loop join, maxdop 1);
    exec rowq.InternalTickHeaders @headers, @schedule_name, @tick, @tick_headers output;
    exec rowq.InternalNextMessageId @message_id output;
    if @dedup_key is not null
        exec rowq.InternalReserveDedupKey @part_id, @dedup_key, @message_id, @holder output;
    if @holder is not null
    begin
        set @message_id = @holder;
        set @outcome = N'duplicate';
        return;
    end;
    if @group_key is not null
        exec rowq.InternalEnterGroup @part_id, @group_key, @group_limit, @has_token output;

    -- That may have waited, and the place of a ready message is the moment of now.
    set @now = sysutcdatetime();
    insert into rowq.message with (rowlock) (
        part_id, message_id, max_attempts, enqueued_at, message_type, dedup_key, headers, body,
        body_binary, group_key
    )
    select s.part_id, @message_id, s.max_attempts, @now, s.message_type, @dedup_key,
           @tick_headers, s.body, s.body_binary, s.group_key
    from rowq.schedule s with (forceseek)
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (maxdop 1);
    select @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = @lane;
    if @is_open = 0
        exec rowq.InternalOpenLanes @part_id, @lane;
    if @has_token = 1
        insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id)
        values (@part_id, @lane, datediff_big(microsecond, '19700101', @now), @message_id);
    else
        insert into rowq.grouped with (rowlock) (part_id, group_key, message_id, lane)
        values (@part_id, @group_key, @message_id, @lane);
    set @outcome = N'enqueued';
end
go
