function internal_peek_ready(p_part_id in number, p_limit in number)
return rowq_lines
is
-- routine   internal_peek_ready
-- purpose   Return the next p_limit ready messages, best lane first.
-- promise   P05 P13
-- differs   no such helper elsewhere: part of peek
    v_lanes t_lanes := internal_open_lanes_of(p_part_id);
    v_left  pls_integer;
    v_some  t_messages;
    v_lines rowq_lines := rowq_lines();
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */
               r.message_id, r.lane, r.attempt, r.seq, null as group_key, 0 as is_tokenless,
               null as is_cancelled
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    for i in 1 .. v_lanes.count loop
        exit when v_lines.count >= p_limit;
        v_left := p_limit - v_lines.count;
        open lane_rows(v_lanes(i).lane, v_lanes(i).floor_seq);
        fetch lane_rows bulk collect into v_some limit v_left;
        close lane_rows;
        for j in 1 .. v_some.count loop
            v_lines.extend;
            v_lines(v_lines.last) := rowq_line(
                v_lines.last, v_some(j).message_id, v_some(j).lane, v_some(j).attempt, null, null
            );
        end loop;
    end loop;
    return v_lines;
end internal_peek_ready;
