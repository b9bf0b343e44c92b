set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalCheckHeaders
    @messages nvarchar(max),
    @is_batch bit,
    @name nvarchar(20) = N'headers',
    @deepest int = 20
as
begin
-- routine   InternalCheckHeaders
-- purpose   Refuse headers, in an array of messages, that not every JSON reader would accept. What else is to be looked at stands in headers, too, with its @name and the depth that makes for it.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: part of message_fault
    set nocount on;
    declare @fault nvarchar(200);

    -- kind is openjson's type: 2 number, 4 array, 5 object.
    with found (depth, position, kind, value) as (
        select 2, cast(e.[key] as int) + 1, j.[type], j.value
        from openjson(@messages) e
        cross apply openjson(e.value) h
        cross apply openjson(iif(h.[key] = N'headers' and h.[type] = 5, h.value, N'{}')) j
        union all
        select f.depth + 1, f.position, j.[type], j.value
        from found f
        cross apply openjson(iif(f.kind in (4, 5), f.value, N'{}')) j
        where f.depth <= @deepest
          and f.kind in (4, 5)
    )
    select top (1) @fault = concat(
        case
            when f.depth > @deepest then @name + N' are nested more than 20 deep'
            else @name + N' have a number of too many digits'
        end,
        iif(@is_batch = 1, concat(N' (message ', f.position, N')'), N'')
    )
    from found f
    cross apply (
        select left(f.value, patindex(N'%[eE]%', f.value + N'e') - 1) as digits,
               stuff(f.value, 1, patindex(N'%[eE]%', f.value + N'e'), N'') as exponent
    ) n
    where f.depth > @deepest
       or f.kind = 2 and len(replace(replace(n.digits, N'-', N''), N'.', N'')) > 100
       or f.kind = 2
          and len(n.exponent) > 0
          and coalesce(try_cast(n.exponent as int), 201) not between -200 and 200
    order by f.position, f.depth desc
    option (maxdop 1, keepfixed plan);
    if @fault is not null
        exec rowq.InternalRefuse @fault;
end
go
