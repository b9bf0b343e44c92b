set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalParseCron
    @cron nvarchar(max),
    @bits nvarchar(200) output
as
begin
-- routine   InternalParseCron
-- purpose   Turn a cron expression into a text of 0 and 1: 60 for minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday on, one for a minute and an hour that are given, one for a day and a weekday that are both given.
-- promise   P15
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
    declare @fault nvarchar(200);
    set @bits = N'';

    -- A dot at the end makes trailing blanks count.
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
    -- A character outside of ASCII may count as a blank, or as nothing, in some collations.
    if datalength(@cron) > 400
        or @rest collate Latin1_General_100_BIN2 like N'%[^ -~' + nchar(9) + N']%'
        set @rest = N'';
    -- Each field ends with one blank, so that there are as many blanks as fields.
    set @rest = concat(ltrim(rtrim(replace(@rest, nchar(9), N' '))), N' ');
    while charindex(N'  ', @rest) > 0
        set @rest = replace(@rest, N'  ', N' ');
    if datalength(@rest) - datalength(replace(@rest, N' ', N'')) <> 10
    begin
        set @fault = concat(
            N'cron must be five fields (minute, hour, day, month, weekday) or a word such as',
            N' @daily, got ', left(@cron, 60)
        );
        exec rowq.InternalRefuse @fault;
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
