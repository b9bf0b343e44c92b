drop procedure if exists rowq.internal_health_queue;

delimiter //
create procedure rowq.internal_health_queue(p_part_id int, out p_checks longtext)
sql security definer
reads sql data
begin
-- routine   internal_health_queue
-- purpose   Return the checks of a queue, as JSON arrays in a row.
-- promise   P13
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_oldest, v_paused_at, v_due_at, v_lease_until, v_recheck_at, v_run_at datetime(6);
    declare v_finished_at, v_expires_at, v_ended_at datetime(6);
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_delayed_from, v_recheck_from, v_expiry_from, v_result_from datetime(6);
    declare v_history_from datetime(6);
    declare v_claim_from bigint;
    declare v_result_seconds double;
    declare v_history_days int;
    declare v_attempt smallint;
    declare v_is_hint boolean;
    declare v_dead, v_waiting, v_failed, v_message_id bigint;
    set p_checks = null;

    select q.paused_at, q.result_seconds, q.history_days
    into v_paused_at, v_result_seconds, v_history_days
    from rowq.queue q
    where q.part_id = p_part_id;
    -- Begin each look where the first live row may be, beyond the dead ones.
    select max(if(l.lane = -1 /* claim */, l.floor, 0)),
           v_epoch + interval max(if(l.lane = -2 /* delayed */, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -4 /* deferred */, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -6 /* expiry */, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -7 /* result */, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -8 /* history */, l.floor, 0)) microsecond
    into v_claim_from, v_delayed_from, v_recheck_from, v_expiry_from, v_result_from,
         v_history_from
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane between -8 /* history */ and -1 /* claim */;

    call rowq.internal_oldest_ready(p_part_id, v_oldest);
    set p_checks = concat_ws(',', p_checks, json_array(
        'oldest_ready', p_part_id,
        coalesce(timestampdiff(microsecond, v_oldest, v_now) / 1e6, 0), 300, 3600,
        concat(
            'seconds that the oldest ready message has waited',
            if(v_paused_at is null, '', '; the queue is paused')
        )
    ));

    select count(*) into v_dead
    from (
        select d.attempt
        from rowq.dead d force index (primary)
        where d.part_id = p_part_id
        limit 1000
    ) h;
    set p_checks = concat_ws(',', p_checks, json_array(
        'dead_messages', p_part_id, v_dead, 1, 1000,
        'dead messages, counted up to 1000; see list_dead and reset'
    ));

    select d.due_at, d.attempt into v_due_at, v_attempt
    from rowq.delayed d force index (primary)
    where d.part_id = p_part_id
      and d.due_at >= v_delayed_from
      and d.due_at <= v_now
    order by d.part_id, d.due_at, d.message_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_delayed', p_part_id,
        coalesce(timestampdiff(microsecond, v_due_at, v_now) / 1e6, 0), 30, 300,
        'seconds that the oldest due message has not been promoted; call maintain every second'
    ));

    select min(c.lease_until) into v_lease_until
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id > 0
      and c.claim_id >= v_claim_from
      and c.lease_until <= v_now;
    set p_checks = concat_ws(',', p_checks, json_array(
        'expired_leases', p_part_id,
        coalesce(timestampdiff(microsecond, v_lease_until, v_now) / 1e6, 0), 30, 300,
        'seconds that the oldest expired lease has not been reaped; call maintain every second'
    ));

    select count(*) into v_waiting
    from (
        select s.message_id
        from (
            select d.message_id, d.attempt
            from rowq.dead d force index (primary)
            where d.part_id = p_part_id
            order by d.part_id desc, d.message_id desc
            limit 10000
        ) n
        straight_join rowq.successor s force index (primary)
            on s.part_id = p_part_id
           and s.predecessor_id = n.message_id
        straight_join rowq.blocked b force index (primary)
            on b.part_id = s.part_id
           and b.message_id = s.message_id
        limit 1000
    ) h;
    set p_checks = concat_ws(',', p_checks, json_array(
        'waits_for_dead', p_part_id, v_waiting, 1, 1000,
        'messages that wait for the newest 10000 dead ones, counted up to 1000; reset or '
        'cancel these'
    ));

    select r.due_at, r.is_hint into v_recheck_at, v_is_hint
    from rowq.recheck r force index (primary)
    where r.part_id = p_part_id
      and r.due_at >= v_recheck_from
      and r.due_at <= v_now
    order by r.part_id, r.due_at, r.recheck_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_groups', p_part_id,
        coalesce(timestampdiff(microsecond, v_recheck_at, v_now) / 1e6, 0), 30, 300,
        'seconds that a group has waited for a transaction of a producer to end, or for maintain'
    ));

    select e.expires_at, e.message_id into v_expires_at, v_message_id
    from rowq.expiry e force index (primary)
    where e.part_id = p_part_id
      and e.expires_at >= v_expiry_from
      and e.expires_at <= v_now
    order by e.part_id, e.expires_at, e.expiry_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_expiries', p_part_id,
        coalesce(timestampdiff(microsecond, v_expires_at, v_now) / 1e6, 0), 30, 300,
        'seconds that a message whose time has come has waited for maintain, or for who holds it'
    ));

    select r.finished_at, r.state = 'dead' into v_finished_at, v_is_hint
    from rowq.result r force index (result_finished_ix)
    where r.part_id = p_part_id
      and r.finished_at >= v_result_from
      and r.finished_at <= v_now
    order by r.part_id, r.finished_at
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_results', p_part_id,
        greatest(
            coalesce(timestampdiff(microsecond, v_finished_at, v_now) / 1e6, 0) - v_result_seconds,
            0
        ),
        300, 3600,
        'seconds that the oldest result has been kept beyond result_seconds; call maintain '
        'every second'
    ));

    select h.ended_at, h.attempt into v_ended_at, v_attempt
    from rowq.history h force index (primary)
    where h.part_id = p_part_id
      and h.ended_at >= v_history_from
      and h.ended_at <= v_now
    order by h.part_id, h.ended_at, h.message_id, h.claim_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_history', p_part_id,
        greatest(
            coalesce(timestampdiff(microsecond, v_ended_at, v_now) / 1e6, 0)
            - v_history_days * 86400,
            0
        ),
        3600, 86400,
        'seconds that the oldest attempt has been kept beyond history_days; call maintain '
        'every second'
    ));

    select min(if(s.next_run_at <= v_now, s.next_run_at, null)), count(s.last_error)
    into v_run_at, v_failed
    from rowq.schedule s force index (primary)
    where s.part_id = p_part_id;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_schedules', p_part_id,
        coalesce(timestampdiff(microsecond, v_run_at, v_now) / 1e6, 0), 30, 300,
        'seconds that a tick of a schedule has not been run; call maintain every second, or end '
        'the transaction that has locked the schedule'
    ));
    set p_checks = concat_ws(',', p_checks, json_array(
        'failed_schedules', p_part_id, v_failed, 1, 1000,
        'schedules whose last tick made no message; list_schedules says why'
    ));
end//
delimiter ;
