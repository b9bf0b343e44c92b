set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckRange
    @name nvarchar(100),
    @value float,
    @low float,
    @high float,
    @is_required bit = 0
as
begin
-- routine   InternalCheckRange
-- version   1
-- purpose   Refuse a number outside its range; null passes unless it is required.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
    set nocount on;
    declare @given nvarchar(40);
    declare @fault nvarchar(400);
    if @value between @low and @high or @value is null and @is_required = 0
        return;

    -- Whole numbers as such: a float of more than six digits would come out as 1e+006.
    set @given = case
        when @value is null then N'null'
        when abs(@value) < 1e15 and @value = floor(@value)
            then convert(nvarchar(40), cast(@value as bigint))
        else convert(nvarchar(40), @value)
    end;
    set @fault = concat(
        @name, N' must be between ', cast(@low as bigint), N' and ', cast(@high as bigint),
        N', got ', @given
    );
    exec rowq.InternalRefuse @fault;
end
go
