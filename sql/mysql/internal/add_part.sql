drop procedure if exists rowq.internal_add_part;

delimiter //
create procedure rowq.internal_add_part(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_add_part
-- purpose   Insert the part row, the gate, the lanes and the fence rows of a new queue.
-- promise   P13
-- locks     new rows only
-- differs   PostgreSQL opens lanes when they are first used, and needs no fence rows
    declare v_lane smallint default 0;

    insert into rowq.part (part_id) values (p_part_id);
    insert into rowq.gate (part_id) values (p_part_id);
    while v_lane < 20 do
        -- The tail of the default priority is open from the start, because most queues use no other
        -- lane.
        insert into rowq.lane (part_id, lane, is_open)
        values (p_part_id, v_lane, v_lane = 11);
        insert into rowq.ready (part_id, lane, seq, message_id)
        values
            (p_part_id, v_lane, 9223372036854775806, 0),
            (p_part_id, v_lane, 9223372036854775807, 0);
        set v_lane = v_lane + 1;
    end while;

    insert into rowq.lane (part_id, lane)
    values
        (p_part_id, -1 /* claim */), (p_part_id, -2 /* delayed */), (p_part_id, -3 /* finished */),
        (p_part_id, -4 /* deferred */), (p_part_id, -5 /* started */), (p_part_id, -6 /* expiry */),
        (p_part_id, -7 /* result */), (p_part_id, -8 /* history */),
        (p_part_id, -9 /* counted claim */), (p_part_id, -20 /* waiters */);
    insert into rowq.delayed (part_id, due_at, message_id, lane)
    values
        (p_part_id, '9999-12-31 23:59:59.999998', 0, 11),
        (p_part_id, '9999-12-31 23:59:59.999999', 0, 11);
    insert into rowq.grouped (part_id, group_key, message_id, lane)
    values (p_part_id, x'FF', 0, 11), (p_part_id, x'FFFF', 0, 11);
    insert into rowq.recheck (part_id, due_at, recheck_id, group_key)
    values
        (p_part_id, '9999-12-31 23:59:59.999998', 0, ''),
        (p_part_id, '9999-12-31 23:59:59.999999', 0, '');
    insert into rowq.expiry (part_id, expires_at, expiry_id, message_id)
    values
        (p_part_id, '9999-12-31 23:59:59.999998', 0, 0),
        (p_part_id, '9999-12-31 23:59:59.999999', 0, 0);
    insert into rowq.result (part_id, message_id, finished_at, state)
    values
        (p_part_id, -1, '9999-12-31 23:59:59.999998', 'completed'),
        (p_part_id, 0, '9999-12-31 23:59:59.999999', 'completed');
    insert into rowq.history (
        part_id, ended_at, message_id, attempt, claim_id, leased_at, outcome
    )
    values
        (
            p_part_id, '9999-12-31 23:59:59.999998', 0, 0, 0, '9999-12-31 00:00:00', 'completed'
        ),
        (
            p_part_id, '9999-12-31 23:59:59.999999', 0, 0, 0, '9999-12-31 00:00:00', 'completed'
        );
    insert into rowq.claim (part_id, claim_id, lease_until, messages)
    values
        (p_part_id, -2, '9999-12-31 00:00:00', '[]'),
        (p_part_id, -1, '9999-12-31 00:00:00', '[]');
    insert into rowq.started (part_id, started_at, claim_id, messages)
    values
        (p_part_id, '1970-01-01 00:00:00', -2, 0),
        (p_part_id, '1970-01-01 00:00:00', -1, 0);
    insert into rowq.finished (part_id, finish_id, finished_at, state, messages)
    values
        (p_part_id, -2, '9999-12-31 00:00:00', 'completed', '[]'),
        (p_part_id, -1, '9999-12-31 00:00:00', 'completed', '[]');
end//
delimiter ;
