set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalTickHeaders
    @headers nvarchar(max),
    @schedule_name nvarchar(200),
    @tick datetime2(6),
    @tick_headers nvarchar(max) output
as
begin
-- routine   InternalTickHeaders
-- purpose   Return the headers of a message of a schedule: its own, the schedule's name and the tick.
    set nocount on;
    set @tick_headers = json_modify(
        json_modify(coalesce(@headers, N'{}'), N'$.schedule', @schedule_name),
        N'$.tick', stuff(convert(nvarchar(26), @tick, 121), 11, 1, N'T') + N'Z'
    );
end
go
