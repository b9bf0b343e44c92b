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
-- locks     as InternalStore
-- differs   elsewhere it calls enqueue, whose rows would come out of maintain here
    set nocount on;
    declare @group_limit int;
    declare @schedule_name nvarchar(200);
    declare @message_type nvarchar(400);
    declare @headers nvarchar(max);
    declare @tick_headers nvarchar(max);
    declare @priority int;
    declare @group_key nvarchar(400);
    declare @max_attempts int;
    declare @dedup_key nvarchar(400);
    declare @body nvarchar(max);
    declare @body_binary varbinary(max);

    select @group_limit = q.group_limit, @schedule_name = s.schedule_name,
           @message_type = s.message_type, @headers = s.headers, @priority = s.priority,
           @group_key = s.group_key, @max_attempts = s.max_attempts,
           @dedup_key = iif(s.overlap = 1, null, N'schedule:' + s.schedule_name),
           @body = s.body, @body_binary = s.body_binary
    from rowq.schedule s with (forceseek)
    inner join rowq.queue q with (forceseek) on q.part_id = s.part_id
    where s.part_id = @part_id
      and s.schedule_key = @schedule_key
    option (loop join, maxdop 1, keepfixed plan);
    exec rowq.InternalTickHeaders @headers, @schedule_name, @tick, @tick_headers output;
    exec rowq.InternalStore
        @part_id, @group_limit, @body, @body_binary, @message_type, @tick_headers, @priority,
        null, null, @dedup_key, @max_attempts, @group_key, null, @message_id output,
        @outcome output;
end
go
