-- Schedules: messages that maintain enqueues by cron or interval.
--
-- maintain locks each due schedule with readpast, enqueues at most 100 of its ticks and sets
-- next_run_at in the same transaction, so a tick makes one message, or none yet after a rollback.
-- If a message is refused, its tick is skipped and last_error keeps the error; other schedules run.
-- Without overlap, the messages of a schedule share a dedup key. A schedule with counts_from end
-- checks once a second for that key while is_running; once the key is gone, its next tick is
-- interval_seconds away. Cron runs on local time, by the server's time zones: a local time that
-- occurs twice counts once; one inside a gap moves to its end. A parsed expression (bits) is 136
-- digits 0 or 1: 60 minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday, then 1 for a
-- fixed minute and hour, then 1 if day and weekday are both set.
--
--   create_schedule, alter_schedule -> check_schedule -> tick_headers, check_time_zone, parse_cron,
--       next_tick
--   next_ticks -> check_time_zone -> windows_zone
--   next_ticks -> parse_cron -> parse_cron_field
--   parse_cron_field -> parse_cron_value
--   next_ticks -> next_tick -> next_cron
--   next_cron -> next_cron_local, local_to_utc, offset_change
--   local_to_utc -> offset_change
--   alter_schedule, drop_schedule, run_schedule -> require_schedule
--   run_schedule -> check_tick -> check_time_zone
--   run_schedule -> enqueue_tick -> tick_headers
--   maintain_queue -> run_schedules -> check_tick, run_due, skip_tick
--   run_due -> windows_zone, parse_cron, enqueue_tick, next_tick
--   run_due -> run_after_end -> enqueue_tick, next_tick
--   skip_tick -> windows_zone, parse_cron, next_tick
--
-- Writes schedule. Only reads queue_lock, queue, time_zone.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalCheckSchedule
    @schedule_name nvarchar(max),
    @cron nvarchar(max),
    @interval_seconds float,
    @time_zone nvarchar(max),
    @missed nvarchar(max),
    @starts_at datetime2(6),
    @ends_at datetime2(6),
    @counts_from nvarchar(max),
    @message_type nvarchar(max),
    @headers nvarchar(max),
    @priority int,
    @max_attempts int,
    @group_key nvarchar(max),
    @body nvarchar(max),
    @body_binary varbinary(max),
    @max_body_length int,
    @next_run_at datetime2(6) output
as
begin
-- purpose   Refuse an invalid schedule; @next_run_at is its first tick.
-- errors    RQ711
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @error nvarchar(200);
    declare @tick_headers nvarchar(max);
    declare @longest_id bigint;
    declare @windows_name nvarchar(128);
    declare @bits nvarchar(200);

    exec rowq.InternalCheckName N'schedule_name', @schedule_name;
    -- The dot makes trailing blanks count.
    set @error = case
        when @cron is null and @interval_seconds is null
            or @cron is not null and @interval_seconds is not null
            then N'exactly one of cron and interval_seconds is required'
        when @missed is null
            or (@missed + N'.') collate Latin1_General_100_BIN2
                not in (N'skip.', N'once.', N'all.')
            then concat(
                N'missed must be skip, once or all, got ', coalesce(left(@missed, 100), N'null')
            )
        when @counts_from is null
            or (@counts_from + N'.') collate Latin1_General_100_BIN2 not in (N'start.', N'end.')
            then concat(
                N'counts_from must be start or end, got ',
                coalesce(left(@counts_from, 100), N'null')
            )
        when @counts_from = N'end' and @cron is not null
            then N'counts_from end requires interval_seconds'
        when @starts_at not between '20000101' and '21000101'
            or @ends_at not between '20000101' and '21000101'
            then N'starts_at and ends_at must be between the years 2000 and 2100'
        when @body is not null and @body_binary is not null
            then N'body and body_binary are mutually exclusive'
    end;
    if @error is not null
        exec rowq.InternalRefuse @error;
    exec rowq.InternalCheckRange N'interval_seconds', @interval_seconds, 1, 315360000;

    exec rowq.InternalCheckMessage
        @message_type, @headers, @priority, null, null, null, @max_attempts, @group_key, null, null,
        null, null;
    -- The tick's headers may make them too long.
    set @longest_id = iif(@counts_from = N'end', 9223372036854775807, null);
    exec rowq.InternalTickHeaders
        @headers, @schedule_name, @now, @longest_id, @tick_headers output;
    if datalength(@tick_headers) / 2 > 65536
        exec rowq.InternalCheckMessage
            @message_type, @tick_headers, @priority, null, null, null, @max_attempts, @group_key,
            null, null, null, null;
    exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;

    exec rowq.InternalCheckTimeZone @time_zone, @windows_name output;
    if @cron is not null
        exec rowq.InternalParseCron @cron, @bits output;
    exec rowq.InternalNextTick
        @bits, @interval_seconds, @windows_name, @starts_at, @ends_at, @counts_from, @now,
        @next_run_at output;
    if @next_run_at is null
        exec rowq.InternalRefuse
            N'the schedule has no tick within 10 years or before ends_at';
end
go

create or alter procedure rowq.InternalTickHeaders
    @headers nvarchar(max),
    @schedule_name nvarchar(200),
    @tick datetime2(6),
    @previous_id bigint,
    @tick_headers nvarchar(max) output
as
begin
-- purpose   Return a tick's headers: the schedule's own, its name, the tick, the message before.
    set nocount on;
    set @tick_headers = json_modify(
        json_modify(coalesce(@headers, N'{}'), N'$.schedule', @schedule_name),
        N'$.tick', stuff(convert(nvarchar(26), @tick, 121), 11, 1, N'T') + N'Z'
    );
    -- A null would remove the schedule's own header.
    if @previous_id is not null
        set @tick_headers = json_modify(@tick_headers, N'$.previous_message_id', @previous_id);
end
go

create or alter procedure rowq.InternalCheckTimeZone
    @time_zone nvarchar(max),
    @windows_name nvarchar(128) output
as
begin
-- purpose   Refuse an unknown time zone; @windows_name is the server's name for it.
-- errors    RQ711
    set nocount on;
    declare @name nvarchar(128) = @time_zone;
    declare @error nvarchar(400);

    -- A longer text was truncated above and could look like a name.
    if datalength(@time_zone) <= 256
        exec rowq.InternalWindowsZone @name, @windows_name output;
    else
        set @windows_name = null;
    -- Compare bytes and the length: trailing blanks are ignored.
    if not exists (
        select 1
        from sys.time_zone_info z
        where z.name collate Latin1_General_100_BIN2 = @windows_name
          and datalength(z.name) = datalength(@windows_name)
    )
    begin
        -- An old Windows lacks newer zones.
        set @error = iif(
            @windows_name <> @name,
            concat(
                N'time_zone ', left(@time_zone, 100), N' is ', @windows_name,
                N' here, which this server does not have: update its operating system'
            ),
            null
        );
        set @error = coalesce(@error, concat(
            N'time_zone must be UTC or a name the server knows, such as Europe/Berlin, got ',
            coalesce(left(@time_zone, 100), N'null')
        ));
        exec rowq.InternalRefuse @error;
    end;
end
go

create or alter procedure rowq.InternalWindowsZone
    @time_zone nvarchar(128),
    @windows_name nvarchar(128) output
as
begin
-- purpose   Return the Windows name of an IANA time zone, and any other name unchanged.
-- differs   elsewhere the server knows IANA names
    set nocount on;
    set @windows_name = @time_zone;
    select @windows_name = z.windows_name
    from rowq.time_zone z
    where z.iana_name = @time_zone
      and datalength(z.iana_name) = datalength(@time_zone);
end
go

create or alter procedure rowq.InternalParseCron
    @cron nvarchar(max),
    @bits nvarchar(200) output
as
begin
-- purpose   Parse a cron expression into 136 digits, 0 or 1.
-- errors    RQ711
    set nocount on;
    declare @rest nvarchar(max);
    declare @number int = 1;
    declare @mark int;
    declare @field nvarchar(200);
    declare @name nvarchar(20);
    declare @low int;
    declare @high int;
    declare @words nvarchar(60);
    declare @part nvarchar(60);
    declare @stars nvarchar(5) = N'';
    declare @error nvarchar(200);
    set @bits = N'';

    -- The dot makes trailing blanks count.
    set @rest = case lower(@cron collate Latin1_General_100_BIN2) + N'.'
        when N'@hourly.' then N'0 * * * *'
        when N'@daily.' then N'0 0 * * *'
        when N'@midnight.' then N'0 0 * * *'
        when N'@weekly.' then N'0 0 * * 0'
        when N'@monthly.' then N'0 0 1 * *'
        when N'@yearly.' then N'0 0 1 1 *'
        when N'@annually.' then N'0 0 1 1 *'
        else @cron
    end;
    -- Some collations treat a character outside ASCII as a blank or ignore it.
    if datalength(@cron) > 400
        or @rest collate Latin1_General_100_BIN2 like N'%[^ -~' + nchar(9) + N']%'
        set @rest = N'';
    -- End each field with one blank, and count the blanks.
    set @rest = concat(ltrim(rtrim(replace(@rest, nchar(9), N' '))), N' ');
    while charindex(N'  ', @rest) > 0
        set @rest = replace(@rest, N'  ', N' ');
    if datalength(@rest) - datalength(replace(@rest, N' ', N'')) <> 10
    begin
        set @error = concat(
            N'cron must be 5 fields (minute, hour, day, month, weekday) or a word such as',
            N' @daily, got ', left(@cron, 60)
        );
        exec rowq.InternalRefuse @error;
    end;

    while @number <= 5
    begin
        set @mark = charindex(N' ', @rest);
        set @field = left(@rest, @mark - 1);
        set @rest = substring(@rest, @mark + 1, 400);
        select @name = v.name, @low = v.low, @high = v.high, @words = v.words
        from (
            values
                (1, N'minute', 0, 59, null),
                (2, N'hour', 0, 23, null),
                (3, N'day', 1, 31, null),
                (4, N'month', 1, 12, N'jan feb mar apr may jun jul aug sep oct nov dec '),
                (5, N'weekday', 0, 7, N'sun mon tue wed thu fri sat ')
        ) v (number, name, low, high, words)
        where v.number = @number;
        exec rowq.InternalParseCronField @field, @name, @low, @high, @words, @part output;
        -- Sunday is 0 and 7.
        if @number = 5
            set @part = iif(right(@part, 1) = N'1', N'1', left(@part, 1)) + substring(@part, 2, 6);
        set @bits += @part;
        set @stars += iif(left(@field, 1) = N'*', N'1', N'0');
        set @number += 1;
    end;
    set @bits += iif(left(@stars, 2) = N'00', N'1', N'0');
    set @bits += iif(substring(@stars, 3, 1) = N'0' and right(@stars, 1) = N'0', N'1', N'0');
end
go

create or alter procedure rowq.InternalParseCronField
    @field nvarchar(200),
    @name nvarchar(20),
    @low int,
    @high int,
    @words nvarchar(60),
    @bits nvarchar(60) output
as
begin
-- purpose   Parse a cron field into 0 and 1 for each value from @low on; @words has their short names.
-- errors    RQ711
    set nocount on;
    declare @rest nvarchar(201) = lower(@field collate Latin1_General_100_BIN2) + N',';
    declare @comma int;
    declare @slash int;
    declare @dash int;
    declare @item nvarchar(200);
    declare @range nvarchar(200);
    declare @first_word nvarchar(200);
    declare @last_word nvarchar(200);
    declare @step_word nvarchar(200);
    declare @first int;
    declare @last int;
    declare @step int;
    declare @error nvarchar(400);
    set @bits = replicate(N'0', @high - @low + 1);

    while datalength(@rest) > 0
    begin
        set @comma = charindex(N',', @rest);
        set @item = left(@rest, @comma - 1);
        set @rest = substring(@rest, @comma + 1, 200);

        set @slash = charindex(N'/', @item);
        set @step_word = iif(@slash = 0, N'1', substring(@item, @slash + 1, 200));
        set @range = iif(@slash = 0, @item, left(@item, @slash - 1));
        if @range = N'*'
            set @range = concat(@low, N'-', @high);
        set @dash = charindex(N'-', @range);
        set @first_word = iif(@dash = 0, @range, left(@range, @dash - 1));
        -- A value with a step runs to the end.
        set @last_word = case
            when @dash > 0 then substring(@range, @dash + 1, 200)
            when @slash > 0 then concat(@high, N'')
            else @first_word
        end;
        exec rowq.InternalParseCronValue @first_word, @low, @words, @first output;
        exec rowq.InternalParseCronValue @last_word, @low, @words, @last output;
        exec rowq.InternalParseCronValue @step_word, 0, null, @step output;
        if @first < @low or @last > @high or @first > @last or @step < 1
        begin
            set @error = concat(
                N'the ', @name, N' field of cron must be *, a value from ', @low, N' to ', @high,
                N', a range, a step or a list, got ', left(@field, 60)
            );
            exec rowq.InternalRefuse @error;
        end;

        while @first <= @last
        begin
            set @bits = stuff(@bits, @first - @low + 1, 1, N'1');
            set @first += @step;
        end;
    end;
end
go

create or alter procedure rowq.InternalParseCronValue
    @word nvarchar(200),
    @low int,
    @words nvarchar(60),
    @value int output
as
begin
-- purpose   Return the value of a number or a name in a cron field; -1 for anything else.
-- differs   elsewhere part of internal_parse_cron_field
    set nocount on;
    declare @position int = charindex(@word collate Latin1_General_100_BIN2, @words);
    set @value = case
        when @word collate Latin1_General_100_BIN2 like N'[0-9]'
            or @word collate Latin1_General_100_BIN2 like N'[0-9][0-9]'
            then cast(@word as int)
        when @word collate Latin1_General_100_BIN2 like N'[a-z][a-z][a-z]' and @position % 4 = 1
            then @low + @position / 4
        else -1
    end;
end
go

create or alter procedure rowq.InternalNextTick
    @bits nvarchar(200),
    @interval_seconds float,
    @windows_name nvarchar(128),
    @starts_at datetime2(6),
    @ends_at datetime2(6),
    @counts_from nvarchar(max),
    @after datetime2(6),
    @tick datetime2(6) output
as
begin
-- purpose   Return the first tick of a schedule after @after, or null. @bits is its parsed cron, or null.
    set nocount on;
    declare @since datetime2(6) = @after;
    declare @step bigint;
    declare @microseconds bigint;

    if @after < @starts_at
        set @since = dateadd(microsecond, -1, @starts_at);
    if @bits is not null
        exec rowq.InternalNextCron @bits, @windows_name, @since, @tick output;
    else if @since < @starts_at
        set @tick = @starts_at;
    else
    begin
        -- An interval from the end counts from @after. Else count microseconds from starts_at, so
        -- that ticks do not drift.
        set @step = cast(round(@interval_seconds * 1e6, 0) as bigint);
        set @microseconds = datediff_big(microsecond, '19700101', @starts_at) + iif(
            @counts_from = N'end',
            datediff_big(microsecond, @starts_at, @since) + @step,
            (datediff_big(microsecond, @starts_at, @since) / @step + 1) * @step
        );
        -- The type ends with the year 9999.
        set @tick = null;
        if @microseconds < 253402214400000000
            exec rowq.InternalFromMicroseconds @microseconds, @tick output;
    end;
    if @tick > @ends_at
        set @tick = null;
end
go

create or alter procedure rowq.InternalNextCron
    @bits nvarchar(200),
    @windows_name nvarchar(128),
    @after datetime2(6),
    @time datetime2(6) output
as
begin
-- purpose   Return the first time after @after that matches @bits; null if none within 10 years.
    set nocount on;
    declare @minute datetime2(6) = dateadd(
        minute, datediff(minute, '20000101', @after), cast('20000101' as datetime2(6))
    );
    declare @local datetime2(6);
    declare @next datetime2(6);
    declare @from datetime2(6);
    declare @far datetime2(6);
    declare @to datetime2(6);
    declare @change datetime2(6);
    set @time = null;

    if substring(@bits, 135, 1) = N'1'
    begin
        -- With a fixed minute and hour, each local time fires once.
        set @next = cast(@minute at time zone N'UTC' at time zone @windows_name as datetime2(6));
        while @time is null or @time <= @after
        begin
            set @time = null;
            set @local = dateadd(minute, 1, @next);
            exec rowq.InternalNextCronLocal @bits, @local, @next output;
            if @next is null
                break;
            exec rowq.InternalLocalToUtc @next, @windows_name, @time output;
        end;
        return;
    end;

    -- Any other expression also fires in an hour that occurs twice. The next local time is as far
    -- away as the clocks say, unless the offset changes before it. Check 26 hours for a change,
    -- then go to 26 hours before that time: no change moves it further.
    set @from = dateadd(minute, 1, @minute);
    while 1 = 1
    begin
        set @local = cast(@from at time zone N'UTC' at time zone @windows_name as datetime2(6));
        exec rowq.InternalNextCronLocal @bits, @local, @next output;
        if @next is null
            break;
        set @time = dateadd(minute, datediff(minute, @local, @next), @from);
        set @far = dateadd(hour, 26, @from);
        set @to = iif(@time < @far, @time, @far);
        exec rowq.InternalOffsetChange @from, @to, @windows_name, @change output;
        if @change is null and @time <= @far
            return;
        set @from = case
            when @change is not null then @change
            when dateadd(hour, -26, @time) > @far then dateadd(hour, -26, @time)
            else @far
        end;
    end;
    set @time = null;
end
go

create or alter procedure rowq.InternalNextCronLocal
    @bits nvarchar(200),
    @from datetime2(6),
    @next datetime2(6) output
as
begin
-- purpose   Return the first local minute from @from on that matches @bits; null if none within 10 years.
    set nocount on;
    declare @day date = @from;
    declare @end date = dateadd(day, 3660, cast(@from as date));
    declare @hour int = datepart(hour, @from);
    declare @minute int = datepart(minute, @from);
    declare @matches int;
    declare @steps int;
    set @next = null;

    while @day < @end
    begin
        if substring(@bits, 115 + datepart(month, @day), 1) = N'0'
            set @day = dateadd(
                month, 1, datefromparts(datepart(year, @day), datepart(month, @day), 1)
            );
        else
        begin
            -- 7 January 1900 was a Sunday; the weekday of datepart depends on set datefirst.
            set @matches = iif(substring(@bits, 84 + datepart(day, @day), 1) = N'1', 1, 0)
                + iif(
                    substring(@bits, 128 + datediff(day, '19000107', @day) % 7, 1) = N'1', 1, 0
                );
            -- Find the first hour, and in it the first minute.
            while @hour < 24 and @matches >= iif(substring(@bits, 136, 1) = N'1', 1, 2)
            begin
                set @steps = charindex(N'1', substring(@bits, 61 + @hour, 24 - @hour));
                if @steps = 0
                    break;
                if @steps > 1
                begin
                    set @hour += @steps - 1;
                    set @minute = 0;
                end;
                set @steps = charindex(N'1', substring(@bits, 1 + @minute, 60 - @minute));
                if @steps > 0
                begin
                    set @next = dateadd(
                        minute, @hour * 60 + @minute + @steps - 1, cast(@day as datetime2(6))
                    );
                    return;
                end;
                set @hour += 1;
                set @minute = 0;
            end;
            set @day = dateadd(day, 1, @day);
        end;
        set @hour = 0;
        set @minute = 0;
    end;
end
go

create or alter procedure rowq.InternalLocalToUtc
    @local datetime2(6),
    @windows_name nvarchar(128),
    @time datetime2(6) output
as
begin
-- purpose   Convert a local time to UTC: the first if it occurs twice, the end of the gap if it is skipped.
    set nocount on;
    declare @day_before datetime2(6) = dateadd(hour, -24, @local);
    declare @day_after datetime2(6) = dateadd(hour, 24, @local);
    -- By the offset of the day before, and of the day after: the engine's own reading of a skipped
    -- or repeated local time is not documented.
    declare @before datetime2(6) = dateadd(
        minute,
        datediff(
            minute,
            cast(@day_before at time zone N'UTC' at time zone @windows_name as datetime2(6)),
            @day_before
        ),
        @local
    );
    declare @after datetime2(6) = dateadd(
        minute,
        datediff(
            minute,
            cast(@day_after at time zone N'UTC' at time zone @windows_name as datetime2(6)),
            @day_after
        ),
        @local
    );

    if cast(@before at time zone N'UTC' at time zone @windows_name as datetime2(6)) = @local
        set @time = @before;
    else if cast(@after at time zone N'UTC' at time zone @windows_name as datetime2(6)) = @local
        set @time = @after;
    else if @before < @after
        exec rowq.InternalOffsetChange @before, @after, @windows_name, @time output;
    else
        exec rowq.InternalOffsetChange @after, @before, @windows_name, @time output;
end
go

create or alter procedure rowq.InternalOffsetChange
    @from datetime2(6),
    @to datetime2(6),
    @windows_name nvarchar(128),
    @change datetime2(6) output
as
begin
-- purpose   Return the first change of the UTC offset after @from, up to @to: whole minutes; or null.
    set nocount on;
    declare @low datetime2(6) = @from;
    declare @middle datetime2(6) = @to;
    declare @offset int = datediff(
        minute, @from, cast(@from at time zone N'UTC' at time zone @windows_name as datetime2(6))
    );
    set @change = null;

    -- Check the end first, then bisect.
    while @change is null or datediff(minute, @low, @change) > 1
    begin
        if datediff(
            minute, @middle,
            cast(@middle at time zone N'UTC' at time zone @windows_name as datetime2(6))
        ) <> @offset
            set @change = @middle;
        else if @change is null
            return;
        else
            set @low = @middle;
        set @middle = dateadd(minute, datediff(minute, @low, @change) / 2, @low);
    end;
end
go

create or alter procedure rowq.InternalRequireSchedule
    @queue_id int,
    @schedule_name nvarchar(max),
    @schedule_key varbinary(402) output
as
begin
-- purpose   Lock a schedule and return its key; raise an error if there is none.
-- locks     the schedule row
-- errors    RQ702 RQ711
    set nocount on;
    declare @key varbinary(402);
    declare @text nvarchar(2048) = concat(
        N'RQ702 schedule_not_found: schedule "', left(@schedule_name, 100), N'" does not exist'
    );
    set @schedule_key = null;
    if @schedule_name is null
        exec rowq.InternalRefuse N'schedule_name is required';

    -- The conversion below would truncate a longer text, which could then match a name.
    if datalength(@schedule_name) <= 400
    begin
        set @key = convert(varbinary(402), @schedule_name + N'.');
        select @schedule_key = s.schedule_key
        from rowq.schedule s with (rowlock, xlock, readcommittedlock, forceseek)
        where s.queue_id = @queue_id
          and s.schedule_key = @key
        option (maxdop 1, keepfixed plan);
    end;
    if @schedule_key is null
    begin
        -- throw reads %% as %, so each % of the text is doubled.
        set @text = replace(@text, N'%', N'%%');
        throw 52702, @text, 1;
    end;
end
go

create or alter procedure rowq.InternalCheckTick
    @queue_id int,
    @schedule_key varbinary(402)
as
begin
-- purpose   Refuse a tick if its body exceeds a lowered limit, or the server has lost its time zone.
-- errors    RQ711
-- differs   elsewhere found while writing; here it must be known before
    set nocount on;
    declare @body nvarchar(max);
    declare @body_binary varbinary(max);
    declare @max_body_length int;
    declare @time_zone nvarchar(max);
    declare @windows_name nvarchar(128);

    select @time_zone = s.time_zone
    from rowq.schedule s with (forceseek)
    where s.queue_id = @queue_id
      and s.schedule_key = @schedule_key
    option (maxdop 1, keepfixed plan);
    exec rowq.InternalCheckTimeZone @time_zone, @windows_name output;

    -- Read the body only if it is too long.
    select @body = s.body, @body_binary = s.body_binary, @max_body_length = q.max_body_length
    from rowq.schedule s with (forceseek)
    inner join rowq.queue q with (forceseek) on q.queue_id = s.queue_id
    where s.queue_id = @queue_id
      and s.schedule_key = @schedule_key
      and (
          datalength(s.body) / 2 > q.max_body_length
          or datalength(s.body_binary) > q.max_body_length
      )
    option (loop join, maxdop 1, keepfixed plan);
    if @@rowcount > 0
        exec rowq.InternalCheckBody @body, @body_binary, @max_body_length;
end
go

create or alter procedure rowq.InternalEnqueueTick
    @queue_id int,
    @schedule_key varbinary(402),
    @tick datetime2(6),
    @message_id bigint output,
    @outcome nvarchar(20) output
as
begin
-- purpose   Enqueue the message of a locked schedule.
-- locks     as InternalStore
-- differs   does not call enqueue, whose rows maintain would return here
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
    declare @previous_id bigint;
    declare @body nvarchar(max);
    declare @body_binary varbinary(max);

    select @group_limit = q.group_limit, @schedule_name = s.schedule_name,
           @message_type = s.message_type, @headers = s.headers, @priority = s.priority,
           @group_key = s.group_key, @max_attempts = s.max_attempts,
           @dedup_key = iif(s.overlap = 1, null, N'schedule:' + s.schedule_name),
           @previous_id = iif(s.counts_from = N'end', s.last_message_id, null),
           @body = s.body, @body_binary = s.body_binary
    from rowq.schedule s with (forceseek)
    inner join rowq.queue q with (forceseek) on q.queue_id = s.queue_id
    where s.queue_id = @queue_id
      and s.schedule_key = @schedule_key
    option (loop join, maxdop 1, keepfixed plan);
    exec rowq.InternalTickHeaders
        @headers, @schedule_name, @tick, @previous_id, @tick_headers output;
    exec rowq.InternalStore
        @queue_id, @group_limit, @body, @body_binary, @message_type, @tick_headers, @priority,
        null, null, @dedup_key, @max_attempts, @group_key, null, null, @message_id output,
        @outcome output;
end
go

create or alter procedure rowq.InternalRunSchedules
    @queue_id int
as
begin
-- purpose   Run the due schedules of a queue that no other session is running.
-- locks     the queue, shared; due schedule rows, skipping locked ones; as InternalRunDue
-- commits   each schedule's own transaction, if the caller has none; never the caller's
-- errors    RQ701
-- differs   a call in the caller's transaction skips schedules with a group or without overlap
    set nocount on;
    set rowcount 0;
    set xact_abort on;
    -- Open a transaction unless the caller has one, or implicit_transactions (bit 2) opens one.
    declare @owns_transaction bit = iif(@@trancount = 0 and @@options & 2 = 0, 1, 0);
    declare @now datetime2(6) = sysutcdatetime();
    declare @begun int;
    declare @queue_name nvarchar(200);
    declare @schedule_key varbinary(402) = 0x;
    declare @next_key varbinary(402);
    declare @is_due bit;
    declare @is_late bit = 0;
    declare @error nvarchar(4000);

    while 1 = 1
    begin
        -- With xact_abort on, a refusal would make the caller's transaction uncommittable.
        if @owns_transaction = 0
            set xact_abort off;
        set @error = null;
        set @next_key = null;
        begin try
            -- Under implicit_transactions this read begins the caller's transaction, at the
            -- caller's isolation level. @begun keeps the value out of the results.
            if @owns_transaction = 0
                select @begun = p.queue_id from rowq.queue_lock p where p.queue_id = 0;
            set transaction isolation level read committed;

            -- Read first: the lock below would also stay on rows that are not due. In the caller's
            -- transaction do not wait, because it holds the queue; in our own, wait for a producer
            -- once.
            select top (1) @next_key = s.schedule_key
            from rowq.schedule s with (rowlock, readpast, readcommittedlock, forceseek)
            where s.queue_id = @queue_id
              and s.schedule_key > @schedule_key
              and s.next_run_at <= @now
              and (
                  @owns_transaction = 1 and @is_late = 0
                  or s.overlap = 1 and s.group_key is null
              )
            order by s.schedule_key
            option (maxdop 1, keepfixed plan);
            if @next_key is null
                break;
            set @schedule_key = @next_key;

            if @owns_transaction = 1
                begin transaction;
            set @queue_name = N'';
            select @queue_name = q.queue_name
            from rowq.queue q with (forceseek)
            where q.queue_id = @queue_id;
            exec rowq.InternalLockQueueShared @queue_id, @queue_name;
            set @is_due = 0;
            select @is_due = 1
            from rowq.schedule s with (rowlock, xlock, readpast, readcommittedlock, forceseek)
            where s.queue_id = @queue_id
              and s.schedule_key = @schedule_key
              and s.next_run_at <= @now
              and (
                  @owns_transaction = 1 and @is_late = 0
                  or s.overlap = 1 and s.group_key is null
              )
            option (maxdop 1, keepfixed plan);
            if @is_due = 1
            begin
                exec rowq.InternalCheckTick @queue_id, @schedule_key;

                -- Writes start here. If the client disconnects, xact_abort rolls back the whole
                -- transaction.
                set xact_abort on;
                exec rowq.InternalRunDue @queue_id, @schedule_key, @owns_transaction;
            end;

            if @owns_transaction = 1
                commit transaction;
        end try
        begin catch
            -- Do not end the caller's transaction. If the call had written, it is already
            -- uncommittable.
            if @owns_transaction = 1 and @@trancount > 0
                rollback transaction;
            if @next_key is null
                or error_number() = 52701
                or @owns_transaction = 0 and xact_state() <> 1
                throw;

            if error_number() = 1222
                set @is_late = 1;
            -- The next call retries errors of locks (1205, 1222) and of the server's state. Any
            -- other error would come again: record it and skip the tick.
            if error_number() <> 1222 and error_severity() between 14 and 16
                set @error = error_message();
        end catch;
        if @error is not null
            exec rowq.InternalSkipTick @queue_id, @schedule_key, @error;
    end;
end
go

create or alter procedure rowq.InternalRunDue
    @queue_id int,
    @schedule_key varbinary(402),
    @owns_transaction bit
as
begin
-- purpose   Enqueue up to 100 due ticks of a schedule and set its next tick.
-- locks     as InternalEnqueueTick, waits 20 ms; the caller has locked the schedule row
-- errors    RQ711
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @late datetime2(6) = dateadd(second, -60, @now);
    declare @cron nvarchar(200);
    declare @bits nvarchar(200);
    declare @interval_seconds float;
    declare @time_zone nvarchar(128);
    declare @windows_name nvarchar(128);
    declare @missed nvarchar(20);
    declare @starts_at datetime2(6);
    declare @ends_at datetime2(6);
    declare @counts_from nvarchar(20);
    declare @tick datetime2(6);
    declare @after datetime2(6);
    declare @ticks int = 0;
    declare @message_id bigint;
    declare @outcome nvarchar(20);
    declare @last_message_id bigint;
    declare @error nvarchar(200);

    -- In the caller's transaction nothing here waits, and a lock timeout would make it
    -- uncommittable.
    if @owns_transaction = 1
        set lock_timeout 20;
    select @cron = s.cron, @interval_seconds = s.interval_seconds, @time_zone = s.time_zone,
           @missed = s.missed, @starts_at = s.starts_at, @ends_at = s.ends_at,
           @counts_from = s.counts_from, @tick = s.next_run_at
    from rowq.schedule s with (forceseek)
    where s.queue_id = @queue_id
      and s.schedule_key = @schedule_key
    option (maxdop 1, keepfixed plan);
    if @counts_from = N'end'
    begin
        exec rowq.InternalRunAfterEnd @queue_id, @schedule_key;
        return;
    end;
    exec rowq.InternalWindowsZone @time_zone, @windows_name output;
    if @cron is not null
        exec rowq.InternalParseCron @cron, @bits output;

    while @tick <= @now and @ticks < 100
    begin
        set @after = @late;
        if @tick >= @late or @missed <> N'skip'
        begin
            exec rowq.InternalEnqueueTick
                @queue_id, @schedule_key, @tick, @message_id output, @outcome output;
            set @error = null;
            if @outcome = N'enqueued'
                set @last_message_id = @message_id;
            else
                set @error = concat(
                    N'message ', @message_id, N' of an earlier tick has not ended'
                );
            set @after = iif(@tick < @late and @missed = N'once', @now, @tick);
            set @ticks += 1;
        end;
        exec rowq.InternalNextTick
            @bits, @interval_seconds, @windows_name, @starts_at, @ends_at, @counts_from, @after,
            @tick output;
    end;

    update s
    set next_run_at     = @tick,
        last_run_at     = iif(@last_message_id is null, s.last_run_at, @now),
        last_message_id = coalesce(@last_message_id, s.last_message_id),
        last_error      = @error
    from rowq.schedule s with (rowlock, forceseek)
    where s.queue_id = @queue_id
      and s.schedule_key = @schedule_key
    option (maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalRunAfterEnd
    @queue_id int,
    @schedule_key varbinary(402)
as
begin
-- purpose   Enqueue the due tick of a schedule that counts from the end, or check for the end.
-- locks     as InternalEnqueueTick; the caller has locked the schedule row
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @interval_seconds float;
    declare @starts_at datetime2(6);
    declare @ends_at datetime2(6);
    declare @is_running bit;
    declare @dedup_key varbinary(802);
    declare @tick datetime2(6);
    declare @next datetime2(6) = dateadd(second, 1, @now);
    declare @owner bigint;
    declare @outcome nvarchar(20);
    declare @last_message_id bigint;

    select @interval_seconds = s.interval_seconds, @starts_at = s.starts_at, @ends_at = s.ends_at,
           @is_running = s.is_running, @tick = s.next_run_at,
           @dedup_key = convert(varbinary(802), N'schedule:' + s.schedule_name + N'.')
    from rowq.schedule s with (forceseek)
    where s.queue_id = @queue_id
      and s.schedule_key = @schedule_key
    option (maxdop 1, keepfixed plan);

    if @is_running = 1
        select @owner = d.message_id
        from rowq.dedup d with (rowlock, readcommittedlock, forceseek)
        where d.queue_id = @queue_id
          and d.dedup_key = @dedup_key
        option (maxdop 1, keepfixed plan);
    else
    begin
        -- A dead message that was reset is a duplicate: wait for it again.
        exec rowq.InternalEnqueueTick
            @queue_id, @schedule_key, @tick, @owner output, @outcome output;
        if @outcome = N'enqueued'
            set @last_message_id = @owner;
    end;
    if @owner is null
        exec rowq.InternalNextTick
            null, @interval_seconds, N'UTC', @starts_at, @ends_at, N'end', @now, @next output;

    update s
    set next_run_at     = @next,
        is_running      = iif(@owner is null, 0, 1),
        last_run_at     = iif(@last_message_id is null, s.last_run_at, @now),
        last_message_id = coalesce(@last_message_id, s.last_message_id),
        last_error      = iif(@is_running = 1, s.last_error, null)
    from rowq.schedule s with (rowlock, forceseek)
    where s.queue_id = @queue_id
      and s.schedule_key = @schedule_key
    option (maxdop 1, keepfixed plan);
end
go

create or alter procedure rowq.InternalSkipTick
    @queue_id int,
    @schedule_key varbinary(402),
    @error nvarchar(4000)
as
begin
-- purpose   Record why a schedule enqueued no message, and set its next tick.
-- locks     the schedule row, skipped if locked
-- errors    RQ711
    set nocount on;
    declare @now datetime2(6) = sysutcdatetime();
    declare @cron nvarchar(200);
    declare @bits nvarchar(200);
    declare @interval_seconds float;
    declare @time_zone nvarchar(128);
    declare @windows_name nvarchar(128);
    declare @starts_at datetime2(6);
    declare @ends_at datetime2(6);
    declare @counts_from nvarchar(20);
    declare @tick datetime2(6);

    select @cron = s.cron, @interval_seconds = s.interval_seconds, @time_zone = s.time_zone,
           @starts_at = s.starts_at, @ends_at = s.ends_at, @counts_from = s.counts_from
    from rowq.schedule s with (rowlock, readpast, readcommittedlock, forceseek)
    where s.queue_id = @queue_id
      and s.schedule_key = @schedule_key
    option (maxdop 1, keepfixed plan);
    if @@rowcount = 0
        return;
    begin try
        exec rowq.InternalWindowsZone @time_zone, @windows_name output;
        if @cron is not null
            exec rowq.InternalParseCron @cron, @bits output;
        exec rowq.InternalNextTick
            @bits, @interval_seconds, @windows_name, @starts_at, @ends_at, @counts_from, @now,
            @tick output;
    end try
    begin catch
        -- If the server has lost the time zone, there is no next tick until the schedule is
        -- altered. Other schedules must run.
        if xact_state() = -1
            throw;
        set @tick = null;
    end catch;

    -- A row that another session has changed is no longer due.
    update s
    set next_run_at = @tick,
        last_error  = left(@error collate Latin1_General_100_CI_AS_SC, 2000)
    from rowq.schedule s with (rowlock, xlock, readpast, readcommittedlock, forceseek)
    where s.queue_id = @queue_id
      and s.schedule_key = @schedule_key
      and s.next_run_at <= @now
    option (maxdop 1, keepfixed plan);
end
go
