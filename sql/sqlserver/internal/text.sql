-- Text: timestamps.
--
-- Times are UTC; floors and lanes have them as microseconds since 1970. The family arguments checks
-- JSON and lists of ids.
--
--   list_delayed, purge_step, promote, ... -> from_microseconds
--
-- No table.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalFromMicroseconds
    @microseconds bigint,
    @time datetime2(6) output
as
begin
-- purpose   Convert microseconds since 1970 to a datetime2.
    set nocount on;
    -- dateadd takes an int, so add in three steps. A literal beyond int would make the division
    -- numeric, which fails under numeric_roundabort.
    set @time = dateadd(
        microsecond, cast(@microseconds % 1000000 as int),
        dateadd(
            second, cast(@microseconds / 1000000 % 86400 as int),
            dateadd(
                day, cast(@microseconds / 1000000 / 86400 as int),
                cast('19700101' as datetime2(6))
            )
        )
    );
end
go
