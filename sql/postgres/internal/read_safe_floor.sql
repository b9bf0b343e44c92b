create or replace function rowq.internal_read_safe_floor(p_part_id integer, p_lane smallint)
returns bigint
language plpgsql
stable
as $$
-- routine   internal_read_safe_floor
-- purpose   Return where a reader of a lane begins that must not overlook late rows. A statement that comes later may begin there, too: nothing appears below it any more.
-- promise   P13 P14
-- differs   only engines whose readers walk dead rows need it
declare
    v_safe bigint;
begin
    select f.safe into v_safe
    from rowq.floor f
    where f.part_id = p_part_id
      and f.lane = p_lane
    order by f.part_id, f.lane, f.generation
    limit 1;
    return coalesce(v_safe, 0);
end;
$$;
