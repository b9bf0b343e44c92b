procedure internal_open_lanes(p_part_id in number, p_lane in number)
is
-- routine   internal_open_lanes
-- purpose   Let dequeue look into a lane and its front companion.
-- promise   P02
-- locks     the rows of the two lanes, passing over locked ones
    v_row_ids t_row_ids;
    -- Skip locked rows, so that no producer waits: their session is usually opening the lanes too.
    -- If the lanes stay closed, the next maintain finds the messages and opens them.
    cursor closed_lanes is
        select l.rowid
        from rowq_lane l
        where l.part_id = p_part_id
          and l.lane in (p_lane, trunc(p_lane / 2) * 2)
          and l.is_open = 0
        for update skip locked;
begin
    open closed_lanes;
    fetch closed_lanes bulk collect into v_row_ids limit 2;
    close closed_lanes;
    forall i in 1 .. v_row_ids.count
        update rowq_lane l
        set l.is_open = 1
        where l.rowid = v_row_ids(i);
end internal_open_lanes;
