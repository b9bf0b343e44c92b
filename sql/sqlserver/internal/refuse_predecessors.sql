set quoted_identifier on;
set ansi_nulls on;
go
create or alter procedure rowq.InternalRefusePredecessors
    @messages nvarchar(max),
    @first_id bigint
as
begin
-- routine   InternalRefusePredecessors
-- purpose   Refuse a batch, all of whose messages are newer than @first_id, for bad lists of predecessors.
-- promise   P15
-- errors    RQ711
    set nocount on;
    declare @fault nvarchar(200);

    -- A number that is no id counts as bad, and as 0 else: for a null in an aggregate the engine
    -- sends a warning, which some drivers take for the result.
    select top (1) @fault = concat(
        case
            when p.[key] = N'predecessor_positions'
                then N'predecessor_positions must be a flat list of places'
                    + N' before the message''s own'
            when h.members > 10000 or h.bad > 0
                then N'predecessor_ids must be a flat list of at most 10000 ids, no null'
            else N'predecessor_ids must name messages that are there'
        end,
        N' (message ', cast(e.[key] as int) + 1, N')'
    )
    from openjson(@messages) e
    cross apply openjson(e.value) p
    cross apply (
        select count(*) as members,
               sum(iif(i.[type] = 2 and try_cast(i.value as bigint) is not null, 0, 1)) as bad,
               min(coalesce(try_cast(i.value as bigint), 0)) as lowest,
               max(coalesce(try_cast(i.value as bigint), 0)) as newest
        from openjson(
            iif(
                p.[key] in (N'predecessor_ids', N'predecessor_positions') and p.[type] = 4,
                p.value, N'[]'
            )
        ) i
    ) h
    where h.members > 10000
       or h.bad > 0
       or p.[key] = N'predecessor_ids' and h.newest >= @first_id
       or p.[key] = N'predecessor_positions'
           and (h.lowest < 1 or h.newest > cast(e.[key] as int))
    order by cast(e.[key] as int);
    if @fault is not null
        exec rowq.InternalRefuse @fault;
end
go
