set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalMomentOfLocal
    @local datetime2(6),
    @windows_name nvarchar(128),
    @moment datetime2(6) output
as
begin
-- routine   InternalMomentOfLocal
-- purpose   Return when the clocks of a time zone show a time: the first of two moments where they are set back over it, and the end of the gap where they are set forward over it.
    set nocount on;
    declare @day_before datetime2(6) = dateadd(hour, -24, @local);
    declare @day_after datetime2(6) = dateadd(hour, 24, @local);
    -- The moment by the offset of the day before, and by that of the day after. How the engine
    -- itself reads a local time that is there twice or never is not relied on.
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
        set @moment = @before;
    else if cast(@after at time zone N'UTC' at time zone @windows_name as datetime2(6)) = @local
        set @moment = @after;
    else if @before < @after
        exec rowq.InternalOffsetChange @before, @after, @windows_name, @moment output;
    else
        exec rowq.InternalOffsetChange @after, @before, @windows_name, @moment output;
end
go
