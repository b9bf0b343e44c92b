procedure internal_health_queue(
    p_part_id        in number,
    p_queue_name     in varchar2,
    p_is_paused      in boolean,
    p_result_seconds in number,
    p_history_days   in number,
    p_checks         in out nocopy rowq_checks
)
is
-- routine   internal_health_queue
-- purpose   Append the checks of a queue.
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_dead        pls_integer;
    v_waiting     pls_integer;
    v_failed      pls_integer;
    v_due_at      timestamp(6);
    v_lease_until timestamp(6);
    v_finished_at timestamp(6);
    v_ended_at    timestamp(6);
    v_history_from constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_part_id, -8 /* history */));

    procedure note(
        p_name in varchar2, p_value in number, p_warning in number, p_critical in number,
        p_detail in varchar2
    )
    is
    begin
        p_checks.extend;
        p_checks(p_checks.last) := rowq_check(
            p_name, p_queue_name, coalesce(p_value, 0), p_warning, p_critical, p_detail
        );
    end note;
begin
    note(
        'oldest_ready', internal_seconds_since(internal_oldest_ready(p_part_id), v_now), 300, 3600,
        'seconds that the oldest ready message has waited'
        || case when p_is_paused then '; the queue is paused' end
    );

    select count(*) into v_dead
    from (
        select d.message_id
        from rowq_dead d
        where d.part_id = p_part_id
        fetch first 1000 rows only
    ) h;
    note(
        'dead_messages', v_dead, 1, 1000,
        'dead messages, counted up to 1000; see list_dead and reset'
    );

    select min(d.due_at) into v_due_at
    from rowq_delayed d
    where d.part_id = p_part_id
      and d.due_at <= v_now;
    note(
        'overdue_delayed', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds that the oldest due message has not been promoted; call maintain every second'
    );

    select min(c.lease_until) into v_lease_until
    from rowq_claim c
    where c.part_id = p_part_id
      and c.lease_until <= v_now;
    note(
        'expired_leases', internal_seconds_since(v_lease_until, v_now), 30, 300,
        'seconds that the oldest expired lease has not been reaped; call maintain every second'
    );

    select count(*) into v_waiting
    from (
        select /*+ leading(d s b) use_nl(s) use_nl(b) index(s rowq_successor_pk)
                   index(b rowq_blocked_pk) */
               s.message_id
        from rowq_dead d
        join rowq_successor s
          on s.part_id = d.part_id
         and s.predecessor_id = d.message_id
        join rowq_blocked b
          on b.part_id = s.part_id
         and b.message_id = s.message_id
        where d.part_id = p_part_id
        fetch first 1000 rows only
    ) h;
    note(
        'waits_for_dead', v_waiting, 1, 1000,
        'messages that wait for dead ones, counted up to 1000; reset or cancel these'
    );

    select min(r.due_at) into v_due_at
    from rowq_recheck r
    where r.part_id = p_part_id
      and r.due_at <= v_now;
    note(
        'overdue_groups', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds that a group has waited for a transaction of a producer to end, or for maintain'
    );

    select min(e.expires_at) into v_due_at
    from rowq_expiry e
    where e.part_id = p_part_id
      and e.expires_at <= v_now;
    note(
        'overdue_expiries', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds that a message whose time has come has waited for maintain, or for who holds it'
    );

    select min(r.finished_at) into v_finished_at
    from rowq_result r
    where r.part_id = p_part_id
      and r.finished_at <= v_now;
    note(
        'overdue_results',
        greatest(internal_seconds_since(v_finished_at, v_now) - p_result_seconds, 0), 300, 3600,
        'seconds that the oldest result has been kept beyond result_seconds; call maintain every'
        || ' second'
    );

    select /*+ index(h rowq_history_pk) */ min(h.ended_at) into v_ended_at
    from rowq_history h
    where h.part_id = p_part_id
      and h.ended_at >= v_history_from
      and h.ended_at <= v_now;
    note(
        'overdue_history',
        greatest(internal_seconds_since(v_ended_at, v_now) - p_history_days * 86400, 0), 3600,
        86400,
        'seconds that the oldest attempt has been kept beyond history_days; call maintain every'
        || ' second'
    );

    select min(case when s.next_run_at <= v_now then s.next_run_at end), count(s.last_error)
    into v_due_at, v_failed
    from rowq_schedule s
    where s.part_id = p_part_id;
    note(
        'overdue_schedules', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds that a tick of a schedule has not been run; call maintain every second, or end '
        || 'the transaction that has locked the schedule or opened its group'
    );
    note(
        'failed_schedules', v_failed, 1, 1000,
        'schedules whose last tick made no message; list_schedules says why'
    );
end internal_health_queue;
