drop procedure if exists rowq.internal_first_key;

delimiter //
create procedure rowq.internal_first_key(
    p_part_id int,
    p_lane smallint,
    p_from bigint,
    out p_first bigint
)
sql security definer
reads sql data
begin
-- routine   internal_first_key
-- purpose   Return the first live key of a lane from p_from on; null where there is none.
-- promise   P13 P14
    declare v_attempt smallint;
    declare v_due_at, v_since datetime(6);
    set p_first = null;

    case p_lane
        when -1 /* claim */ then
            select c.claim_id, c.messages is null into p_first, v_attempt
            from rowq.claim c force index (primary)
            where c.part_id = p_part_id
              and c.claim_id > 0
              and c.claim_id >= p_from
            order by c.part_id, c.claim_id
            limit 1;
        when -2 /* delayed */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select d.due_at, d.attempt into v_due_at, v_attempt
            from rowq.delayed d force index (primary)
            where d.part_id = p_part_id
              and d.due_at >= v_since
            order by d.part_id, d.due_at, d.message_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -3 /* finished */ then
            select f.finish_id, f.messages is null into p_first, v_attempt
            from rowq.finished f force index (primary)
            where f.part_id = p_part_id
              and f.finish_id > 0
              and f.finish_id >= p_from
            order by f.part_id, f.finish_id
            limit 1;
        when -4 /* deferred */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select r.due_at, r.is_hint into v_due_at, v_attempt
            from rowq.recheck r force index (primary)
            where r.part_id = p_part_id
              and r.due_at >= v_since
            order by r.part_id, r.due_at, r.recheck_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -6 /* expiry */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select e.expires_at, e.lane into v_due_at, v_attempt
            from rowq.expiry e force index (primary)
            where e.part_id = p_part_id
              and e.expires_at >= v_since
            order by e.part_id, e.expires_at, e.expiry_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -7 /* result */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select r.finished_at, r.state = 'dead' into v_due_at, v_attempt
            from rowq.result r force index (result_finished_ix)
            where r.part_id = p_part_id
              and r.finished_at >= v_since
            order by r.part_id, r.finished_at
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -8 /* history */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select h.ended_at, h.outcome is null into v_due_at, v_attempt
            from rowq.history h force index (primary)
            where h.part_id = p_part_id
              and h.ended_at >= v_since
            order by h.part_id, h.ended_at, h.message_id, h.claim_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -5 /* started */ then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select s.started_at, s.messages into v_due_at, v_attempt
            from rowq.started s force index (primary)
            where s.part_id = p_part_id
              and s.claim_id > 0
              and s.started_at >= v_since
            order by s.part_id, s.started_at, s.claim_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        else
            select r.seq, r.attempt into p_first, v_attempt
            from rowq.ready r force index (primary)
            where r.part_id = p_part_id
              and r.lane = p_lane
              and r.seq >= p_from
              and r.seq < 9223372036854775806
            order by r.part_id, r.lane, r.seq, r.message_id
            limit 1;
    end case;
end//
delimiter ;
