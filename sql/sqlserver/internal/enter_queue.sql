set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalEnterQueue
    @queue_name nvarchar(max),
    @part_id int output,
    @lease_seconds int = null output,
    @max_attempts int = null output,
    @archive_days int = null output,
    @is_paused bit = null output,
    @max_body_length int = null output,
    @group_limit int = null output,
    @result_seconds float = null output,
    @history_days int = null output
as
begin
-- routine   InternalEnterQueue
-- purpose   Return the part and the settings of a queue, and keep it from being dropped; raise an error if it does not exist.
-- promise   P01 P02 P15
-- locks     the row of the part, shared, to the end of the transaction; waits for a drop
-- errors    RQ701 RQ711
-- differs   on PostgreSQL the first insert waits for a drop
    set nocount on;
    declare @queue_key varbinary(402);
    set @part_id = null;

    -- A longer text is no name of a queue, but the conversion below would cut it off, and it could
    -- look like one.
    if datalength(@queue_name) <= 400
    begin
        -- The row of the part stays locked to the end of the transaction (repeatableread).
        set @queue_key = convert(varbinary(402), @queue_name + N'.');
        select @part_id = q.part_id, @lease_seconds = q.lease_seconds,
               @max_attempts = q.max_attempts, @archive_days = q.archive_days,
               @is_paused = iif(q.paused_at is null, 0, 1), @max_body_length = q.max_body_length,
               @group_limit = q.group_limit, @result_seconds = q.result_seconds,
               @history_days = q.history_days
        from rowq.queue q
        inner join rowq.part p with (rowlock, repeatableread, forceseek) on p.part_id = q.part_id
        where q.queue_key = @queue_key
        option (loop join, force order, maxdop 1, keepfixed plan);
    end;
    if @part_id is null
        exec rowq.InternalRefuseQueue @queue_name;
end
go
