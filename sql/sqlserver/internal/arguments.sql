-- Arguments: what a call may pass.
--
-- A routine checks all of its arguments before it locks or writes anything, so a refused call
-- changes nothing. A *check* raises RQ711; an *error* helper returns what is wrong, or null, so
-- that a batch can name the message at fault. Bodies are compared by bytes first: counting bytes
-- costs nothing, and no text has more characters than bytes.
--
--   create_queue, alter_queue -> check_settings -> check_name, check_range, refuse
--   check_schedule -> check_name -> refuse
--   bind_topic, unbind_topic, enqueue, ... -> refuse
--   purge_queue, dequeue_wait, peek, ... -> check_range -> refuse
--   enqueue, publish, check_schedule, ... -> check_body -> refuse
--   enqueue, publish, check_schedule -> check_message -> check_range, refuse, check_ids,
--       check_headers
--   complete, retry_later, cancel, ... -> check_ids -> refuse
--   enqueue_batch, check_results -> check_headers -> refuse
--   reap, promote, archive, ... -> check_batch_size -> check_range
--   enqueue_batch -> check_input -> refuse
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
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- errors    RQ711
    set nocount on;
    declare @error nvarchar(200);

    exec rowq.InternalCheckName N'queue_name', @queue_name;
    exec rowq.InternalCheckRange N'lease_seconds', @lease_seconds, 1, 86400;
    exec rowq.InternalCheckRange N'max_attempts', @max_attempts, 1, 10000;
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
-- purpose   Refuse a bad name of a queue or a schedule; @name is that of the parameter.
-- errors    RQ711
-- differs   elsewhere a regular expression says it
    set nocount on;
    declare @size int = len((@value + N'.') collate Latin1_General_100_CI_AS_SC) - 1;
    declare @place int = 1;
    declare @code int;
    declare @is_bad bit = iif(@size between 1 and 100, 0, 1);
    declare @error nvarchar(200);

    -- The control characters are 0 to 31 and 127 to 159.
    while @is_bad = 0 and @place <= datalength(@value) / 2
    begin
        set @code = unicode(substring(@value collate Latin1_General_100_BIN2, @place, 1));
        set @is_bad = iif(@code between 0 and 31 or @code between 127 and 159, 1, 0);
        set @place += 1;
    end;
    if @is_bad = 1
    begin
        set @error = concat(@name, N' must be 1 to 100 characters, none of them control');
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
-- differs   PostgreSQL raises with an expression
    set nocount on;
    declare @text nvarchar(2048) = concat(N'RQ711 invalid_argument: ', left(@error, 400));
    -- throw reads %% as %, so each % of the text is doubled.
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
-- purpose   Refuse a number outside its range; null passes unless it is required.
-- errors    RQ711
    set nocount on;
    declare @input nvarchar(40);
    declare @error nvarchar(400);
    if @value between @low and @high or @value is null and @is_required = 0
        return;

    -- A float that becomes text directly loses digits: 315360000.5 would become 3.1536e+008.
    set @input = N'null';
    if abs(@value) >= 1e15
        set @input = convert(nvarchar(40), @value);
    else if @value is not null
    begin
        -- A caller may have numeric_roundabort on: then the rounding below would raise an error of
        -- the engine instead of our refusal.
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
-- purpose   Refuse a body that is longer than its queue takes.
-- errors    RQ711
    set nocount on;
    declare @length bigint = datalength(@body_binary);
    declare @error nvarchar(200);

    -- The collation counts an emoji as one character. It counts slowly, so use it only where the
    -- body has more UTF-16 units than the queue allows characters.
    if datalength(@body) / 2 > @max_length
        set @length = len((@body + N'.') collate Latin1_General_100_CI_AS_SC) - 1;
    if @length > @max_length
    begin
        set @error = concat(
            N'body is ', @length, N' long, and the queue takes ', @max_length, N': max_body_length'
        );
        exec rowq.InternalRefuse @error;
    end;
end
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
-- purpose   Refuse invalid arguments of enqueue.
-- errors    RQ711
    set nocount on;
    declare @error nvarchar(200);
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
    set @error = case
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
    if @error is not null
        exec rowq.InternalRefuse @error;
    if @predecessor_ids is not null
        exec rowq.InternalCheckIds @predecessor_ids, N'predecessor_ids';

    if @headers is not null
    begin
        set @headers = concat(N'[{"headers":', @headers, N'}]');
        exec rowq.InternalCheckHeaders @headers, @is_batch = 0;
    end;
end
go

create or alter procedure rowq.InternalCheckIds
    @message_ids nvarchar(max),
    @name nvarchar(40) = N'message_ids'
as
begin
-- purpose   Refuse a list of messages that is no JSON array of ids, or too long; null passes.
-- errors    RQ711
-- differs   other engines that have arrays check only their length
    set nocount on;
    declare @count int;
    declare @good int;
    declare @error nvarchar(200) = concat(
        @name, N' must be a flat list of at most 10000 ids, no null'
    );
    if @message_ids is null
        return;

    -- openjson reports an array as type 4 and a number as type 2. It raises an error for text that
    -- is not JSON or is nested more than 128 deep, so isjson looks first: at the list alone, and at
    -- the list inside another array, as it is read here.
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
-- purpose   Refuse headers, in an array of messages, that not every JSON reader would accept. What else is to be looked at stands in headers, too, with its @name and the depth that makes for it.
-- errors    RQ711
-- differs   no such helper elsewhere: part of message_error
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
            when f.depth > @deepest then @name + N' are nested more than 20 deep'
            else @name + N' have a number of too many digits'
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
-- purpose   Refuse a housekeeping batch_size that is missing or outside 1 to 10000.
-- errors    RQ711
    set nocount on;
    exec rowq.InternalCheckRange N'batch_size', @batch_size, 1, 10000, @is_required = 1;
end
go

create or alter procedure rowq.InternalCheckInput
    @input rowq.input_list readonly,
    @max_body_length int,
    @is_published bit
as
begin
-- purpose   Refuse a batch with an invalid message, and say which one; topics of published ones are for InternalCheckTopics.
-- errors    RQ711
    set nocount on;
    declare @error nvarchar(200);

    -- kind is openjson's type: 0 null, 1 text, 2 number, 3 boolean, 4 array, 5 object.
    select top (1) @error = concat(left(f.fault, 100), N' (message ', g.position, N')')
    from @input g
    cross apply (
        select case
            when g.name is null
                then iif(g.kind = 5, null, N'a message must be a JSON object')
            when g.name not in (
                    N'body', N'body_base64', N'message_type', N'headers', N'priority',
                    N'delay_seconds', N'run_at', N'dedup_key', N'max_attempts', N'group_key',
                    N'predecessor_ids', N'predecessor_positions', N'on_predecessor_dead', N'topic',
                    N'expire_seconds'
                )
                or g.name like N'% '
                or g.name = N'topic' and @is_published = 0
                then concat(N'unknown key ', g.name)
            when @is_published = 1
                and g.name in (
                    N'predecessor_ids', N'predecessor_positions', N'on_predecessor_dead'
                )
                then N'a published message has no predecessors'
            when g.kind = 0
                then null
            when g.name in (N'body', N'body_base64') and g.size > @max_body_length
                then concat(
                    N'body is ', g.size, N' long, and the queue takes ', @max_body_length,
                    N': max_body_length'
                )
            when g.name = N'body'
                then null
            when g.name = N'headers' and g.kind = 5
                then iif(g.size > 65536, N'headers are longer than 65536 characters', null)
            when g.name = N'headers'
                then N'headers must be an object'
            when g.name in (N'priority', N'max_attempts')
                and (g.kind <> 2 or g.value like N'%[^0-9-]%' or try_cast(g.value as int) is null)
                then concat(g.name, N' must be an integer, got ', left(g.value, 40))
            when g.name = N'priority'
                then iif(
                    try_cast(g.value as int) between 0 and 9, null,
                    concat(N'priority must be between 0 and 9, got ', g.value)
                )
            when g.name = N'max_attempts'
                then iif(
                    try_cast(g.value as int) between 1 and 10000, null,
                    concat(N'max_attempts must be between 1 and 10000, got ', g.value)
                )
            when g.name = N'delay_seconds'
                then case
                    when g.kind <> 2 or try_cast(g.value as float) is null
                        then N'delay_seconds must be a number'
                    when try_cast(g.value as float) not between 0 and 315360000
                        then concat(
                            N'delay_seconds must be between 0 and 315360000, got ',
                            left(g.value, 40)
                        )
                end
            when g.name = N'expire_seconds'
                then case
                    when g.kind <> 2 or try_cast(g.value as float) is null
                        then N'expire_seconds must be a number'
                    when try_cast(g.value as float) not between 0.001e0 and 315360000
                        then concat(
                            N'expire_seconds must be between 0.001 and 315360000, got ',
                            left(g.value, 40)
                        )
                end
            when g.name in (N'predecessor_ids', N'predecessor_positions')
                then iif(g.kind = 4, null, concat(g.name, N' must be an array'))
            when g.kind <> 1
                then concat(g.name, N' must be a string')
            when g.name = N'on_predecessor_dead'
                and g.value + N'.' not in (N'hold.', N'continue.', N'fail.')
                then N'on_predecessor_dead must be hold, continue or fail'
            when g.name = N'message_type' and g.size > 200
                then N'message_type is longer than 200 characters'
            when g.name in (N'dedup_key', N'group_key') and g.size not between 1 and 200
                then concat(g.name, N' must be 1 to 200 characters')
            when g.name = N'dedup_key' and left(g.value, 9) = N'schedule:'
                then N'dedup_key must not begin with schedule:, which is for schedules'
            when g.name = N'body_base64' and g.is_base64 = 0
                then N'body_base64 is not base64'
            when g.name = N'run_at' and g.moment is null
                then concat(N'run_at is no moment: ', left(g.value, 40))
            when g.name = N'run_at' and g.moment > dateadd(day, 3650, sysutcdatetime())
                then N'run_at must be a moment within the next ten years'
        end
    ) f (fault)
    where f.fault is not null
    order by g.position;
    if @error is not null
        exec rowq.InternalRefuse @error;

    select top (1) @error = concat(
        iif(
            h.bodies > 1, N'body and body_base64 exclude each other',
            N'delay_seconds and run_at exclude each other'
        ),
        N' (message ', h.position, N')'
    )
    from (
        select g.position,
               sum(iif(g.name in (N'body', N'body_base64'), 1, 0)) as bodies,
               sum(iif(g.name in (N'delay_seconds', N'run_at'), 1, 0)) as times
        from @input g
        where g.kind > 0
        group by g.position
    ) h
    where h.bodies > 1 or h.times > 1
    order by h.position;
    if @error is not null
        exec rowq.InternalRefuse @error;
end
go
