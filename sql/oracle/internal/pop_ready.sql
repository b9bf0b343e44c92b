procedure internal_pop_ready(
    p_part_id  in number,
    p_lanes    in t_lanes,
    p_limit    in number,
    p_messages out nocopy t_messages
)
is
-- routine   internal_pop_ready
-- purpose   Take up to p_limit messages from the lanes, in the order of p_lanes.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones
-- differs   a cursor bounds the batch: rownum would count before the skip, fetch first is refused
    v_probe  rowq_ready.message_id%type;
    v_left   pls_integer;
    v_locked t_locked_rows;
    cursor lane_head(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id;
    -- The order is that of the index, so nothing is sorted and a row is locked only when it is
    -- fetched: one fetch of n rows locks n rows. Batched table access would break that order.
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) no_batch_table_access_by_rowid(r) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.part_id, r.lane, r.seq, r.message_id
        for update skip locked;
begin
    p_messages.delete;
    for i in 1 .. p_lanes.count loop
        exit when p_messages.count >= p_limit;
        -- Look without a lock first, so that a call that finds nothing begins no transaction.
        v_probe := null;
        open lane_head(p_lanes(i).lane, p_lanes(i).floor_seq);
        fetch lane_head into v_probe;
        close lane_head;
        if v_probe is not null then
            v_left := p_limit - p_messages.count;
            open lane_rows(p_lanes(i).lane, p_lanes(i).floor_seq);
            fetch lane_rows bulk collect into v_locked limit v_left;
            close lane_rows;
            internal_delete_ready(v_locked, p_messages);
        end if;
    end loop;

    -- From here on seq is the place in the claim.
    for i in 1 .. p_messages.count loop
        p_messages(i).attempt := p_messages(i).attempt + 1;
        p_messages(i).seq := i;
    end loop;
end internal_pop_ready;
