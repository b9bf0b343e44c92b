set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNextCronLocal
    @bits nvarchar(200),
    @from datetime2(6),
    @next datetime2(6) output
as
begin
-- routine   InternalNextCronLocal
-- purpose   Return the first minute from @from on, in local time, that a parsed cron expression names; null where the next ten years have none.
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
            -- Look for the first hour, and in that hour for the first minute.
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
