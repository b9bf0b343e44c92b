function internal_first_key(p_part_id in number, p_lane in number, p_from in number)
return number
is
-- routine   internal_first_key
-- purpose   Return the first live key of a lane from p_from on; null where there is none.
-- promise   P13 P14
    v_since  constant timestamp(6) :=
        internal_from_microseconds(
            case when p_lane in (-1 /* claim */, -3 /* finished */) then 0 else p_from end
        );
    v_first  number;
    v_moment timestamp(6);
    -- Each cursor is ordered and fetched once, so the walk ends at the first row.
    cursor claims is
        select /*+ index_rs_asc(c rowq_claim_pk) */ c.claim_id
        from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id >= p_from
        order by c.part_id, c.claim_id;
    cursor delayed_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.due_at
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_since
        order by d.part_id, d.due_at, d.message_id;
    cursor finished_rows is
        select /*+ index_rs_asc(f rowq_finished_pk) */ f.finish_id
        from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id >= p_from
        order by f.part_id, f.finish_id, f.message_id;
    cursor recheck_rows is
        select /*+ index_rs_asc(r rowq_recheck_pk) */ r.due_at
        from rowq_recheck r
        where r.part_id = p_part_id
          and r.due_at >= v_since
        order by r.part_id, r.due_at, r.recheck_id;
    cursor started_rows is
        select /*+ index_rs_asc(s rowq_started_pk) */ s.started_at
        from rowq_started s
        where s.part_id = p_part_id
          and s.started_at >= v_since
        order by s.part_id, s.started_at, s.claim_id;
    cursor expiry_rows is
        select /*+ index_rs_asc(e rowq_expiry_pk) */ e.expires_at
        from rowq_expiry e
        where e.part_id = p_part_id
          and e.expires_at >= v_since
        order by e.part_id, e.expires_at, e.expiry_id;
    cursor result_rows is
        select /*+ index_rs_asc(r rowq_result_finished_ix) */ r.finished_at
        from rowq_result r
        where r.part_id = p_part_id
          and r.finished_at >= v_since
        order by r.part_id, r.finished_at;
    cursor history_rows is
        select /*+ index_rs_asc(h rowq_history_pk) */ h.ended_at
        from rowq_history h
        where h.part_id = p_part_id
          and h.ended_at >= v_since
        order by h.part_id, h.ended_at, h.message_id, h.claim_id;
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_from
        order by r.part_id, r.lane, r.seq, r.message_id;
begin
    case p_lane
        when -1 /* claim */ then
            open claims;
            fetch claims into v_first;
            close claims;
        when -2 /* delayed */ then
            open delayed_rows;
            fetch delayed_rows into v_moment;
            close delayed_rows;
            v_first := internal_microseconds(v_moment);
        when -3 /* finished */ then
            open finished_rows;
            fetch finished_rows into v_first;
            close finished_rows;
        when -4 /* deferred */ then
            open recheck_rows;
            fetch recheck_rows into v_moment;
            close recheck_rows;
            v_first := internal_microseconds(v_moment);
        when -5 /* started */ then
            open started_rows;
            fetch started_rows into v_moment;
            close started_rows;
            v_first := internal_microseconds(v_moment);
        when -6 /* expiry */ then
            open expiry_rows;
            fetch expiry_rows into v_moment;
            close expiry_rows;
            v_first := internal_microseconds(v_moment);
        when -7 /* result */ then
            open result_rows;
            fetch result_rows into v_moment;
            close result_rows;
            v_first := internal_microseconds(v_moment);
        when -8 /* history */ then
            open history_rows;
            fetch history_rows into v_moment;
            close history_rows;
            v_first := internal_microseconds(v_moment);
        else
            open ready_rows;
            fetch ready_rows into v_first;
            close ready_rows;
    end case;
    return v_first;
end internal_first_key;
