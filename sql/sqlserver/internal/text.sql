-- Text: timestamps.
--
-- Times are UTC, and microseconds since 1970 in floors and lanes. JSON, and lists of ids, are
-- checked in the family arguments.
--
--   list_delayed, purge_step, promote, ... -> from_microseconds
--
-- No table.

set quoted_identifier on;
set ansi_nulls on;
go

create or alter procedure rowq.InternalFromMicroseconds
    @microseconds bigint,
    @moment datetime2(6) output
as
begin
-- purpose   Return the moment that is so many microseconds after the beginning of 1970.
-- differs   other engines have an expression for it
    set nocount on;
    -- dateadd takes an int, so the moment is built in three steps. A literal beyond int would make
    -- the division a numeric one, which fails under numeric_roundabort.
    set @moment = dateadd(
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
