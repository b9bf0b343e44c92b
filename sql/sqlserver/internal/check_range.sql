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
-- purpose   Refuse a number outside its range; null passes unless it is required.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @given nvarchar(40);
    declare @fault nvarchar(400);
    if @value between @low and @high or @value is null and @is_required = 0
        return;

    -- A float that becomes text directly loses digits: 315360000.5 would become 3.1536e+008.
    set @given = N'null';
    if abs(@value) >= 1e15
        set @given = convert(nvarchar(40), @value);
    else if @value is not null
    begin
        -- A caller may have numeric_roundabort on: then the rounding below would raise an error of
        -- the engine instead of our refusal.
        set numeric_roundabort off;
        set @given = convert(nvarchar(40), cast(@value as decimal(38, 6)));
        set @given = replace(rtrim(replace(@given, N'0', N' ')), N' ', N'0');
        if right(@given, 1) = N'.'
            set @given = left(@given, len(@given) - 1);
    end;
    set @fault = concat(
        @name, N' must be between ',
        case @low
            when 0.1e0 then N'0.1'
            when 0.001e0 then N'0.001'
            else convert(nvarchar(40), cast(@low as bigint))
        end,
        N' and ',
        cast(@high as bigint), N', got ', @given
    );
    exec rowq.InternalRefuse @fault;
end
go
