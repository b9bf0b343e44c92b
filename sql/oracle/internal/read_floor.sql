function internal_read_floor(p_part_id in number, p_lane in number)
return number
is
-- routine   internal_read_floor
-- version   1
-- purpose   Where the live rows of a lane begin; 0 for a lane that is not there.
-- promise   P13
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_floor rowq_lane.floor_seq%type;
begin
    select coalesce(max(l.floor_seq), 0) into v_floor
    from rowq_lane l
    where l.part_id = p_part_id
      and l.lane = p_lane;
    return v_floor;
end internal_read_floor;
