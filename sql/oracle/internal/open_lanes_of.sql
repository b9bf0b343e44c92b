function internal_open_lanes_of(p_part_id in number)
return t_lanes
is
-- routine   internal_open_lanes_of
-- purpose   Return the lanes that dequeue looks into, best first, with their floors.
-- promise   P05 P13
-- differs   no such helper elsewhere: other engines read them one by one
    v_lanes t_lanes;
begin
    select l.lane, l.floor_seq
    bulk collect into v_lanes
    from rowq_lane l
    where l.part_id = p_part_id
      and l.lane >= 0
      and l.is_open = 1
    order by l.part_id, l.lane;
    return v_lanes;
end internal_open_lanes_of;
