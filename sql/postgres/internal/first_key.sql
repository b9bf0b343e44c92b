create or replace function rowq.internal_first_key(
    p_part_id integer,
    p_lane    smallint,
    p_from    bigint
)
returns bigint
language plpgsql
as $$
-- routine   internal_first_key
-- purpose   Return the first live key of a lane from p_from on that this statement can see; null where there is none.
-- promise   P14
-- differs   only engines whose readers walk dead rows need it
declare
    v_key bigint;
begin
    if p_lane >= 0 then
        select r.seq into v_key
        from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = p_lane
          and r.seq >= p_from
        order by r.part_id, r.lane, r.seq
        limit 1;
    elsif p_lane = -1 /* claim */ then
        select c.claim_id into v_key
        from rowq.claim c
        where c.part_id = p_part_id
          and c.claim_id >= p_from
        order by c.part_id, c.claim_id
        limit 1;
    elsif p_lane = -2 /* delayed */ then
        select extract(epoch from d.due_at) * 1000000 into v_key
        from rowq.delayed d
        where d.part_id = p_part_id
          and d.due_at >= rowq.internal_from_microseconds(p_from)
        order by d.part_id, d.due_at, d.message_id
        limit 1;
    elsif p_lane = -5 /* started */ then
        select extract(epoch from s.started_at) * 1000000 into v_key
        from rowq.started s
        where s.part_id = p_part_id
          and s.started_at >= rowq.internal_from_microseconds(p_from)
        order by s.part_id, s.started_at, s.claim_id
        limit 1;
    elsif p_lane = -6 /* expiry */ then
        select extract(epoch from e.expires_at) * 1000000 into v_key
        from rowq.expiry e
        where e.part_id = p_part_id
          and e.expires_at >= rowq.internal_from_microseconds(p_from)
        order by e.part_id, e.expires_at, e.expiry_id
        limit 1;
    elsif p_lane = -7 /* result */ then
        select extract(epoch from r.finished_at) * 1000000 into v_key
        from rowq.result r
        where r.part_id = p_part_id
          and r.finished_at >= rowq.internal_from_microseconds(p_from)
        order by r.part_id, r.finished_at
        limit 1;
    elsif p_lane = -8 /* history */ then
        select extract(epoch from h.ended_at) * 1000000 into v_key
        from rowq.history h
        where h.part_id = p_part_id
          and h.ended_at >= rowq.internal_from_microseconds(p_from)
        order by h.part_id, h.ended_at, h.message_id, h.claim_id
        limit 1;
    elsif p_lane = -3 /* finished */ then
        select f.finish_id into v_key
        from rowq.finished f
        where f.part_id = p_part_id
          and f.finish_id >= p_from
        order by f.part_id, f.finish_id
        limit 1;
    else
        select extract(epoch from r.due_at) * 1000000 into v_key
        from rowq.recheck r
        where r.part_id = p_part_id
          and r.due_at >= rowq.internal_from_microseconds(p_from)
        order by r.part_id, r.due_at, r.recheck_id
        limit 1;
    end if;
    return v_key;
end;
$$;
