set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalStore
    @part_id int,
    @group_limit int,
    @body nvarchar(max),
    @body_binary varbinary(max),
    @message_type nvarchar(max),
    @headers nvarchar(max),
    @priority int,
    @delay_seconds float,
    @run_at datetime2(6),
    @dedup_key nvarchar(max),
    @max_attempts int,
    @group_key nvarchar(max),
    @expire_seconds float,
    @message_id bigint output,
    @outcome nvarchar(20) output
as
begin
-- routine   InternalStore
-- purpose   Keep a message without predecessors that has been checked; the outcome is enqueue's.
-- promise   P01 P11 P12 P20 P21 P22 P36
-- locks     new rows; with a dedup key and with a group key, waits as enqueue does
-- differs   elsewhere enqueue does it, whose rows would come out of the caller here
    set nocount on;
    declare @now datetime2(6);
    declare @due_at datetime2(6);
    declare @expires_at datetime2(6);
    declare @lane smallint = @priority * 2 + 1;
    declare @is_open bit;
    declare @group_bytes varbinary(802) = convert(varbinary(802), @group_key + N'.');
    declare @has_token bit = 1;
    declare @holder bigint;

    exec rowq.InternalNextMessageId @message_id output;
    if @dedup_key is not null
        exec rowq.InternalReserveDedupKey @part_id, @dedup_key, @message_id, @holder output;
    if @holder is not null
    begin
        set @message_id = @holder;
        set @outcome = N'duplicate';
        return;
    end;

    set @now = sysutcdatetime();
    set @due_at = coalesce(
        @run_at,
        dateadd(
            microsecond, cast(round((@delay_seconds - floor(@delay_seconds)) * 1e6, 0) as int),
            dateadd(second, cast(floor(@delay_seconds) as int), @now)
        )
    );
    if @due_at <= @now
        set @due_at = null;
    if @group_key is not null and @due_at is null
    begin
        exec rowq.InternalEnterGroup @part_id, @group_bytes, @group_limit, @has_token output;
        -- That may have waited, and the place of a ready message is the moment of now.
        set @now = sysutcdatetime();
    end;
    set @expires_at = dateadd(
        microsecond, cast(round((@expire_seconds - floor(@expire_seconds)) * 1e6, 0) as int),
        dateadd(second, cast(floor(@expire_seconds) as int), @now)
    );
    insert into rowq.message with (rowlock) (
        part_id, message_id, max_attempts, enqueued_at, due_at, expires_at, message_type,
        dedup_key, headers, body, body_binary, group_key
    )
    values (
        @part_id, @message_id, @max_attempts, @now, @due_at, @expires_at, @message_type,
        @dedup_key, @headers, @body, @body_binary, @group_key
    );

    select @is_open = l.is_open
    from rowq.lane l with (readuncommitted, forceseek)
    where l.part_id = @part_id
      and l.lane = @lane;
    if @is_open = 0
        exec rowq.InternalOpenLanes @part_id, @lane;
    if @due_at is not null
        insert into rowq.delayed with (rowlock) (part_id, due_at, message_id, lane, group_key)
        values (@part_id, @due_at, @message_id, @lane, @group_bytes);
    else if @has_token = 1
        insert into rowq.ready with (rowlock) (part_id, lane, seq, message_id)
        values (@part_id, @lane, datediff_big(microsecond, '19700101', @now), @message_id);
    else
        insert into rowq.grouped with (rowlock) (part_id, group_key, message_id, lane)
        values (@part_id, @group_bytes, @message_id, @lane);
    -- Where the message is not ready, maintain finds it by other keys.
    if @expires_at is not null
        insert into rowq.expiry with (rowlock)
            (part_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            @part_id,
            iif(@expires_at > dateadd(day, 1, @now), dateadd(day, 1, @now), @expires_at),
            @message_id, @message_id, @lane,
            datediff_big(microsecond, '19700101', @now)
        );
    set @outcome = N'enqueued';
end
go
