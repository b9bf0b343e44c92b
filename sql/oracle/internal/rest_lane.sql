procedure internal_rest_lane(p_part_id in number, p_lane in number, p_took in number)
is
-- routine   internal_rest_lane
-- purpose   Look at a lane no more for fifty times as long as the last look took, p_took microseconds.
-- promise   P13 P14
-- locks     the row of the lane, passed over when locked
-- differs   no such helper elsewhere: part of rescan_floors
    c_duty          constant number := 50;
    c_longest_pause constant number := 3600000000;
    v_row_id rowid;
    cursor lane_row is
        select l.rowid
        from rowq_lane l
        where l.part_id = p_part_id
          and l.lane = p_lane
        for update skip locked;
begin
    open lane_row;
    fetch lane_row into v_row_id;
    close lane_row;
    update rowq_lane l
    set l.check_after = sys_extract_utc(systimestamp)
        + numtodsinterval(least(p_took * c_duty, c_longest_pause) / 1000000, 'second')
    where l.rowid = v_row_id;
end internal_rest_lane;
