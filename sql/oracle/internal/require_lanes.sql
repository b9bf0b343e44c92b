procedure internal_require_lanes(
    p_queue_name  in varchar2,
    p_queue       out nocopy t_queue,
    p_lanes       out nocopy t_lanes,
    p_has_recheck out boolean
)
is
-- routine   internal_require_lanes
-- purpose   Read what a dequeue needs of a queue, and the lanes to look into, best first; raise an error if there is none. p_has_recheck says whether recheck may have rows.
-- promise   P05 P13 P15
-- errors    RQ701 RQ711
-- differs   no such helper elsewhere: one statement in place of two
    v_key   raw(400);
    v_found t_open_lanes;
    v_next  pls_integer;
begin
    if length(p_queue_name) <= 100 then
        v_key := utl_raw.cast_to_raw(p_queue_name);
        -- Every queue has open lanes: those of the default priority, which nothing closes. Of the
        -- lanes below 0 only that of recheck may be open.
        select /*+ leading(q l) use_nl(l) index(l rowq_lane_pk) */
               q.part_id, q.lease_seconds, q.max_leased, q.rate_limit, q.paused_at, l.lane,
               l.floor_seq
        bulk collect into v_found
        from rowq_queue q
        join rowq_lane l
          on l.part_id = q.part_id
         and l.is_open = 1
        where q.queue_key = v_key
        order by l.part_id, l.lane;
    end if;
    if v_found.count = 0 then
        internal_refuse_queue(p_queue_name);
    end if;

    p_lanes.delete;
    p_has_recheck := false;
    p_queue.part_id := v_found(1).part_id;
    p_queue.lease_seconds := v_found(1).lease_seconds;
    p_queue.max_leased := v_found(1).max_leased;
    p_queue.rate_limit := v_found(1).rate_limit;
    p_queue.paused_at := v_found(1).paused_at;
    for i in 1 .. v_found.count loop
        if v_found(i).lane = -4 /* deferred */ then
            p_has_recheck := true;
        else
            v_next := p_lanes.count + 1;
            p_lanes(v_next).lane := v_found(i).lane;
            p_lanes(v_next).floor_seq := v_found(i).floor_seq;
        end if;
    end loop;
end internal_require_lanes;
