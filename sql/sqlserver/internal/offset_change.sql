set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalOffsetChange
    @from datetime2(6),
    @to datetime2(6),
    @windows_name nvarchar(128),
    @change datetime2(6) output
as
begin
-- routine   InternalOffsetChange
-- purpose   Return the first moment after @from, up to @to, when the clocks of a time zone were changed; null where they were not. Both moments are whole minutes at most two days apart.
    set nocount on;
    declare @low datetime2(6) = @from;
    declare @middle datetime2(6) = @to;
    declare @offset int = datediff(
        minute, @from, cast(@from at time zone N'UTC' at time zone @windows_name as datetime2(6))
    );
    set @change = null;

    -- Look at the end first, and then halve what lies between.
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
