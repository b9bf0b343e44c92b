set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckMessage
    @message_type nvarchar(max),
    @headers nvarchar(max),
    @priority int,
    @delay_seconds float,
    @run_at datetime2(6),
    @dedup_key nvarchar(max),
    @max_attempts int,
    @group_key nvarchar(max),
    @predecessor_ids nvarchar(max),
    @on_predecessor_dead nvarchar(max),
    @expire_seconds float
as
begin
-- routine   InternalCheckMessage
-- purpose   Refuse invalid arguments of enqueue.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @fault nvarchar(200);
    declare @is_object bit = 0;

    if @priority is null or @priority not between 0 and 9
        exec rowq.InternalCheckRange N'priority', @priority, 0, 9, @is_required = 1;
    if @delay_seconds not between 0 and 315360000
        exec rowq.InternalCheckRange N'delay_seconds', @delay_seconds, 0, 315360000;
    if @max_attempts not between 1 and 10000
        exec rowq.InternalCheckRange N'max_attempts', @max_attempts, 1, 10000;
    if @expire_seconds not between 0.001e0 and 315360000
        exec rowq.InternalCheckRange N'expire_seconds', @expire_seconds, 0.001e0, 315360000;

    -- openjson reports an object as type 5. It raises an error for text that is not JSON or is
    -- nested more than 128 deep, so isjson looks first: at the headers alone, and at the headers as
    -- deep inside other JSON as they are ever read.
    if isjson(@headers) = 1 and isjson(concat(N'[{"headers":', @headers, N'}]')) = 1
        select @is_object = iif(max(j.[type]) = 5, 1, 0)
        from openjson(concat(N'[', @headers, N']')) j;

    -- A dot at the end makes trailing blanks count. The collation counts an emoji as one character.
    set @fault = case
        when @message_type is not null
            and len((@message_type + N'.') collate Latin1_General_100_CI_AS_SC) > 201
            then N'message_type is longer than 200 characters'
        when @headers is not null and @is_object = 0
            then N'headers must be a JSON object'
        when datalength(@headers) / 2 > 65536
            and len((@headers + N'.') collate Latin1_General_100_CI_AS_SC) > 65537
            then N'headers are longer than 65536 characters'
        when @delay_seconds is not null and @run_at is not null
            then N'delay_seconds and run_at exclude each other'
        when @run_at > dateadd(day, 3650, sysutcdatetime())
            then N'run_at must be a moment within the next ten years'
        when @dedup_key is not null
            and len((@dedup_key + N'.') collate Latin1_General_100_CI_AS_SC) not between 2 and 201
            then N'dedup_key must be 1 to 200 characters'
        when left(@dedup_key, 9) collate Latin1_General_100_BIN2 = N'schedule:'
            then N'dedup_key must not begin with schedule:, which is for schedules'
        when @group_key is not null
            and len((@group_key + N'.') collate Latin1_General_100_CI_AS_SC) not between 2 and 201
            then N'group_key must be 1 to 200 characters'
        when (@on_predecessor_dead + N'.') collate Latin1_General_100_BIN2
            not in (N'hold.', N'continue.', N'fail.')
            then N'on_predecessor_dead must be hold, continue or fail'
    end;
    if @fault is not null
        exec rowq.InternalRefuse @fault;
    if @predecessor_ids is not null
        exec rowq.InternalCheckIds @predecessor_ids, N'predecessor_ids';

    if @headers is not null
    begin
        set @headers = concat(N'[{"headers":', @headers, N'}]');
        exec rowq.InternalCheckHeaders @headers, @is_batch = 0;
    end;
end
go
