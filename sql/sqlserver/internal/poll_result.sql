set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalPollResult
    @queue_name nvarchar(max),
    @message_id bigint,
    @until datetime2(6),
    @pause_ms int output,
    @answer nvarchar(max) output
as
begin
-- routine   InternalPollResult
-- purpose   Look once for wait_for_result: return the row of get_result as JSON object, else the pause before the next look, in milliseconds; @pause_ms is passed in as the one before this look.
-- promise   P32
-- locks     as InternalReadResult
-- errors    RQ701 RQ711
    set nocount on;
    declare @part_id int;
    declare @result_seconds float;
    declare @is_last bit = iif(sysutcdatetime() >= @until, 1, 0);
    declare @left_ms bigint;
    declare @state nvarchar(20);
    declare @finished_at datetime2(6);
    declare @result nvarchar(max);
    declare @last_error nvarchar(4000);
    set @answer = null;

    if @message_id is null
        exec rowq.InternalRefuse N'message_id is missing';
    exec rowq.InternalRequireQueue
        @queue_name, @part_id output, @result_seconds = @result_seconds output;
    -- Most looks need no more than the result, which is found by its key.
    select @state = r.state, @finished_at = r.finished_at, @result = r.result,
           @last_error = r.last_error
    from rowq.result r with (index (result_pk), rowlock, readpast, readcommittedlock, forceseek)
    where r.part_id = @part_id
      and r.message_id = @message_id;

    -- The first look and the last one ask where the message is, too.
    if @state is null and (@pause_ms is null or @is_last = 1)
    begin
        exec rowq.InternalReadResult
            @part_id, @message_id, @state output, @finished_at output, @result output,
            @last_error output;
        if @state is null
            set @is_last = 1;
    end;
    if @is_last = 0 and @finished_at is null
    begin
        if @result_seconds = 0
            exec rowq.InternalRefuse N'the queue keeps no results: its result_seconds is 0';
        set @left_ms = datediff_big(millisecond, sysutcdatetime(), @until);
        set @pause_ms = iif(@pause_ms > 125, 250, coalesce(@pause_ms * 2, 20));
        if @pause_ms > @left_ms
            set @pause_ms = iif(@left_ms > 1, @left_ms, 1);
        return;
    end;

    set @pause_ms = null;
    -- "for json" would not take a result that is a number or a text as it is.
    if @state is not null
        set @answer = concat(
            N'{"message_id":', @message_id, N',"state":"', @state, N'","finished_at":',
            iif(
                @finished_at is null, N'null',
                concat(N'"', convert(nvarchar(30), @finished_at, 126), N'+00:00"')
            ),
            N',"result":', coalesce(@result, N'null'), N',"last_error":',
            iif(
                @last_error is null, N'null',
                concat(N'"', string_escape(@last_error, N'json'), N'"')
            ),
            N'}'
        );
end
go
