procedure internal_move_floor(
    p_part_id in number,
    p_lane    in number,
    p_from    in number,
    p_to      in number
)
is
-- routine   internal_move_floor
-- purpose   Move the floor of a lane down, or up if it still is where the caller saw it.
-- promise   P13 P14
-- locks     the row of the lane, passed over when locked
    v_row_id rowid;
    v_floor  rowq_lane.floor_seq%type;
    cursor lane_row is
        select l.rowid, l.floor_seq
        from rowq_lane l
        where l.part_id = p_part_id
          and l.lane = p_lane
        for update skip locked;
begin
    open lane_row;
    fetch lane_row into v_row_id, v_floor;
    close lane_row;
    if v_floor = p_from or p_to < v_floor then
        update rowq_lane l
        set l.floor_seq = p_to
        where l.rowid = v_row_id;
    end if;
end internal_move_floor;
