-- Arguments: what a call may pass.
--
-- A routine checks all arguments before it locks or writes, so a refused call changes nothing.
-- A *check* raises RQ711; an *error* helper returns the error or null, so that a batch can add the
-- position of the message. Bodies are compared by bytes first: counting bytes is free, and a text
-- never has more characters than bytes.
--
--   create_queue, alter_queue -> check_settings -> check_name, check_range, refuse
--   check_schedule -> check_name -> refuse
--   bind_topic, unbind_topic, enqueue, ... -> refuse
--   purge_queue, dequeue_wait, peek, ... -> check_range -> refuse
--   enqueue, publish, check_schedule, ... -> check_body -> refuse
--   check_message -> check_range, refuse, check_ids, check_headers
--   complete, retry_later, cancel, ... -> check_ids -> refuse
--   enqueue_batch, check_results -> check_headers -> refuse
--   reap, promote, archive, ... -> check_batch_size -> check_range
--
-- No table.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalCheckSettings
    @queue_name nvarchar(max),
    @lease_seconds int,
    @max_attempts int,
    @backoff_base_seconds float,
    @backoff_factor float,
    @backoff_cap_seconds float,
    @backoff_jitter float,
    @archive_days int,
    @max_body_length int,
    @group_limit int,
    @group_after_dead nvarchar(max),
    @group_pause_seconds float,
    @max_leased int,
    @rate_limit int,
    @rate_seconds float,
    @result_seconds float,
    @history_days int
as
begin
-- purpose   Refuse an invalid queue name or setting; a null setting is valid.
-- errors    RQ711
    set nocount on;
    declare @error nvarchar(200);

    exec rowq.InternalCheckName N'queue_name', @queue_name;
    exec rowq.InternalCheckRange N'lease_seconds', @lease_seconds, 1, 86400;
    exec rowq.InternalCheckRange N'max_attempts', @max_attempts, 0, 10000;
    exec rowq.InternalCheckRange N'backoff_base_seconds', @backoff_base_seconds, 0, 86400;
    exec rowq.InternalCheckRange N'backoff_factor', @backoff_factor, 1, 10;
    exec rowq.InternalCheckRange N'backoff_cap_seconds', @backoff_cap_seconds, 0, 31536000;
    exec rowq.InternalCheckRange N'backoff_jitter', @backoff_jitter, 0, 1;
    exec rowq.InternalCheckRange N'archive_days', @archive_days, 0, 36500;
    exec rowq.InternalCheckRange N'max_body_length', @max_body_length, 1, 33554432;
    exec rowq.InternalCheckRange N'group_limit', @group_limit, 1, 100;
    exec rowq.InternalCheckRange N'group_pause_seconds', @group_pause_seconds, 0, 86400;
    exec rowq.InternalCheckRange N'max_leased', @max_leased, 0, 100000;
    exec rowq.InternalCheckRange N'rate_limit', @rate_limit, 0, 100000;
    exec rowq.InternalCheckRange N'rate_seconds', @rate_seconds, 0.1e0, 86400;
    exec rowq.InternalCheckRange N'result_seconds', @result_seconds, 0, 31536000;
    exec rowq.InternalCheckRange N'history_days', @history_days, 0, 36500;
    -- A dot at the end makes trailing blanks count.
    if (@group_after_dead + N'.') collate Latin1_General_100_BIN2
        not in (N'continue.', N'hold.')
    begin
        set @error = concat(
            N'group_after_dead must be continue or hold, got ', left(@group_after_dead, 100)
        );
        exec rowq.InternalRefuse @error;
    end;
end
go

create or alter procedure rowq.InternalCheckName
    @name nvarchar(100),
    @value nvarchar(max)
as
begin
-- purpose   Refuse an invalid name of a queue or schedule; @name is the parameter.
-- errors    RQ711
    set nocount on;
    declare @size int = len((@value + N'.') collate Latin1_General_100_CI_AS_SC) - 1;
    declare @position int = 1;
    declare @code int;
    declare @is_bad bit = iif(@size between 1 and 100, 0, 1);
    declare @error nvarchar(200);

    -- The control characters are 0 to 31 and 127 to 159.
    while @is_bad = 0 and @position <= datalength(@value) / 2
    begin
        set @code = unicode(substring(@value collate Latin1_General_100_BIN2, @position, 1));
        set @is_bad = iif(@code between 0 and 31 or @code between 127 and 159, 1, 0);
        set @position += 1;
    end;
    if @is_bad = 1
    begin
        set @error = concat(@name, N' must be 1 to 100 characters without control characters');
        exec rowq.InternalRefuse @error;
    end;
end
go

create or alter procedure rowq.InternalRefuse
    @error nvarchar(max)
as
begin
-- purpose   Raise the error for an invalid argument.
-- errors    RQ711
    set nocount on;
    declare @text nvarchar(2048) = concat(N'RQ711 invalid_argument: ', left(@error, 400));
    -- throw reads %% as %.
    set @text = replace(@text, N'%', N'%%');
    throw 52711, @text, 1;
end
go

create or alter procedure rowq.InternalCheckRange
    @name nvarchar(100),
    @value float,
    @low float,
    @high float,
    @is_required bit = 0
as
begin
-- purpose   Refuse a number outside its range; null is valid unless it is required.
-- errors    RQ711
    set nocount on;
    declare @input nvarchar(40);
    declare @error nvarchar(400);
    if @value between @low and @high or @value is null and @is_required = 0
        return;

    -- Converting a float to text directly loses digits: 315360000.5 would become 3.1536e+008.
    set @input = N'null';
    if abs(@value) >= 1e15
        set @input = convert(nvarchar(40), @value);
    else if @value is not null
    begin
        -- With the caller's numeric_roundabort on, the rounding below would raise an error.
        set numeric_roundabort off;
        set @input = convert(nvarchar(40), cast(@value as decimal(38, 6)));
        set @input = replace(rtrim(replace(@input, N'0', N' ')), N' ', N'0');
        if right(@input, 1) = N'.'
            set @input = left(@input, len(@input) - 1);
    end;
    set @error = concat(
        @name, N' must be between ',
        case @low
            when 0.1e0 then N'0.1'
            when 0.001e0 then N'0.001'
            else convert(nvarchar(40), cast(@low as bigint))
        end,
        N' and ',
        cast(@high as bigint), N', got ', @input
    );
    exec rowq.InternalRefuse @error;
end
go

create or alter procedure rowq.InternalCheckBody
    @body nvarchar(max),
    @body_binary varbinary(max),
    @max_length int
as
begin
-- purpose   Refuse a body that is longer than max_body_length.
-- errors    RQ711
    set nocount on;
    declare @length bigint = datalength(@body_binary);
    declare @error nvarchar(200);

    -- The collation counts an emoji as one character, but slowly: use it only if the body has more
    -- UTF-16 units than characters are allowed.
    if datalength(@body) / 2 > @max_length
        set @length = len((@body + N'.') collate Latin1_General_100_CI_AS_SC) - 1;
    if @length > @max_length
    begin
        set @error = concat(
            N'body must be at most ', @max_length, N' characters (max_body_length), got ', @length
        );
        exec rowq.InternalRefuse @error;
    end;
end
go

create or alter procedure rowq.InternalCheckIds
    @message_ids nvarchar(max),
    @name nvarchar(40) = N'message_ids'
as
begin
-- purpose   Refuse a text that is not a JSON array of at most 10000 ids; null is valid.
-- errors    RQ711
-- differs   PostgreSQL has arrays, and checks only their length
    set nocount on;
    declare @count int;
    declare @good int;
    declare @error nvarchar(200) = concat(
        @name, N' must be a list of at most 10000 ids without nulls'
    );
    if @message_ids is null
        return;

    -- openjson reports an array as type 4 and a number as type 2. It raises an error for invalid
    -- JSON or nesting above 128, so check isjson first: of the list, and of the list inside another
    -- array, as it is read here.
    if isjson(@message_ids) = 1 and isjson(concat(N'[', @message_ids, N']')) = 1
    begin
        if 4 = (select top (1) j.[type] from openjson(concat(N'[', @message_ids, N']')) j)
            select @count = count(*),
                   @good = sum(
                       iif(j.[type] = 2 and try_cast(j.value as bigint) is not null, 1, 0)
                   )
            from openjson(@message_ids) j;
    end;
    if @count is null or @count > 10000 or @good < @count
        exec rowq.InternalRefuse @error;
end
go

create or alter procedure rowq.InternalCheckHeaders
    @messages nvarchar(max),
    @is_batch bit,
    @name nvarchar(20) = N'headers',
    @deepest int = 20
as
begin
-- purpose   Refuse the headers in an array of messages that a JSON parser may not accept.
-- errors    RQ711
--
-- Other values are passed as headers, with their @name and the depth of their level 20.
    set nocount on;
    declare @error nvarchar(200);

    -- kind is openjson's type: 2 number, 4 array, 5 object.
    with found (depth, position, kind, value) as (
        select 2, cast(e.[key] as int) + 1, j.[type], j.value
        from openjson(@messages) e
        cross apply openjson(e.value) h
        cross apply openjson(iif(h.[key] = N'headers' and h.[type] = 5, h.value, N'{}')) j
        union all
        select f.depth + 1, f.position, j.[type], j.value
        from found f
        cross apply openjson(iif(f.kind in (4, 5), f.value, N'{}')) j
        where f.depth <= @deepest
          and f.kind in (4, 5)
    )
    select top (1) @error = concat(
        case
            when f.depth > @deepest then @name + N' must be nested at most 20 deep'
            else @name + N' must not contain numbers with more than 100 digits'
        end,
        iif(@is_batch = 1, concat(N' (message ', f.position, N')'), N'')
    )
    from found f
    cross apply (
        select left(f.value, patindex(N'%[eE]%', f.value + N'e') - 1) as digits,
               stuff(f.value, 1, patindex(N'%[eE]%', f.value + N'e'), N'') as exponent
    ) n
    where f.depth > @deepest
       or f.kind = 2 and len(replace(replace(n.digits, N'-', N''), N'.', N'')) > 100
       or f.kind = 2
          and len(n.exponent) > 0
          and coalesce(try_cast(n.exponent as int), 201) not between -200 and 200
    order by f.position, f.depth desc
    option (maxdop 1, keepfixed plan);
    if @error is not null
        exec rowq.InternalRefuse @error;
end
go

create or alter procedure rowq.InternalCheckBatchSize
    @batch_size int
as
begin
-- purpose   Refuse a maintenance batch_size that is null or outside 1 to 10000.
-- errors    RQ711
    set nocount on;
    exec rowq.InternalCheckRange N'batch_size', @batch_size, 1, 10000, @is_required = 1;
end
go
