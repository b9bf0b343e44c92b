set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalFromMicroseconds
    @microseconds bigint,
    @moment datetime2(6) output
as
begin
-- routine   InternalFromMicroseconds
-- version   1
-- purpose   The moment that lies so many microseconds after 1970 began, as floors are kept.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   other engines have an expression for it
    set nocount on;
    -- In three steps, because dateadd takes an int.
    set @moment = dateadd(
        microsecond, cast(@microseconds % 1000000 as int),
        dateadd(
            second, cast(@microseconds / 1000000 % 86400 as int),
            dateadd(
                day, cast(@microseconds / 86400000000 as int), cast('19700101' as datetime2(6))
            )
        )
    );
end
go
