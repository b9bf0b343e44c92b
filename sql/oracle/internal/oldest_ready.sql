function internal_oldest_ready(p_part_id in number)
return timestamp
is
-- routine   internal_oldest_ready
-- purpose   Find when the oldest message at the head of a lane was enqueued; null where there is none.
-- promise   P13
    v_lanes  t_lanes := internal_open_lanes_of(p_part_id);
    v_id     rowq_ready.message_id%type;
    v_head   timestamp(6);
    v_oldest timestamp(6);
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    for i in 1 .. v_lanes.count loop
        v_id := null;
        open lane_rows(v_lanes(i).lane, v_lanes(i).floor_seq);
        fetch lane_rows into v_id;
        close lane_rows;
        select min(m.enqueued_at) into v_head
        from rowq_message m
        where m.part_id = p_part_id
          and m.message_id = v_id;
        v_oldest := least(coalesce(v_oldest, v_head), coalesce(v_head, v_oldest));
    end loop;
    return v_oldest;
end internal_oldest_ready;
