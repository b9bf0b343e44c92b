set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalNextCron
    @bits nvarchar(200),
    @windows_name nvarchar(128),
    @after datetime2(6),
    @moment datetime2(6) output
as
begin
-- routine   InternalNextCron
-- purpose   Return the first moment after @after that a parsed cron expression names; null where the next ten years have none.
-- promise   P31
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
    set @moment = null;

    if substring(@bits, 135, 1) = N'1'
    begin
        -- A minute and an hour that are given fire once for each local time.
        set @next = cast(@minute at time zone N'UTC' at time zone @windows_name as datetime2(6));
        while @moment is null or @moment <= @after
        begin
            set @moment = null;
            set @local = dateadd(minute, 1, @next);
            exec rowq.InternalNextCronLocal @bits, @local, @next output;
            if @next is null
                break;
            exec rowq.InternalMomentOfLocal @next, @windows_name, @moment output;
        end;
        return;
    end;

    -- Any other one fires in each hour that there is, also in one that the clocks show twice. A
    -- time is as far away as the clocks say unless they are changed on the way. The look for that
    -- goes no further than a day, because local times that do not match are none later either.
    set @from = dateadd(minute, 1, @minute);
    while 1 = 1
    begin
        set @local = cast(@from at time zone N'UTC' at time zone @windows_name as datetime2(6));
        exec rowq.InternalNextCronLocal @bits, @local, @next output;
        if @next is null
            break;
        set @moment = dateadd(minute, datediff(minute, @local, @next), @from);
        set @far = dateadd(hour, 26, @from);
        set @to = iif(@moment < @far, @moment, @far);
        exec rowq.InternalOffsetChange @from, @to, @windows_name, @change output;
        if @change is null and @moment <= @far
            return;
        set @from = case
            when @change is not null then @change
            when dateadd(hour, -26, @moment) > @far then dateadd(hour, -26, @moment)
            else @far
        end;
    end;
    set @moment = null;
end
go
