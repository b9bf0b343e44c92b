create or replace function rowq.internal_is_rescan_due(
    p_part_id integer,
    p_lane    smallint,
    p_what    text
)
returns boolean
language plpgsql
as $$
-- routine   internal_is_rescan_due
-- version   1
-- purpose   Whether a lane's time has come for a rescan, or for a sweep; so too without a floor.
-- promise   P13 P14
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   only engines whose readers walk dead rows need it
declare
    v_at timestamp with time zone;
begin
    select case p_what when 'sweep' then f.sweep_at else f.rescan_at end into v_at
    from rowq.floor f
    where f.part_id = p_part_id
      and f.lane = p_lane
    order by f.part_id, f.lane, f.generation
    limit 1;
    return v_at is null or rowq.internal_is_past(v_at);
end;
$$;
