-- Health: what health and queue_stats measure.
--
-- Each check returns its name, the queue, a value, and the thresholds for warning and critical.
-- health starts at the floor of each table. queue_stats counts up to max_count. Checks of the
-- server name the session or transaction that an operator has to end.
--
--   queue_stats -> count_messages -> oldest_ready
--   health -> health_queue -> oldest_ready
--   health -> health_server -> stored_numbers, last_number
--   after_failover -> stored_numbers, last_number, advance_sequence
--
-- Reads blocked, claim, dead, delayed, expiry, finished, group_waiting, history, leased, message,
-- meta, queue, ready, deferred, result, schedule, successor.

function internal_count_messages(p_queue_id in number, p_limit in number)
return rowq_count
is
-- purpose   Count the messages of a queue by state, each up to p_limit.
    v_count rowq_count := rowq_count(p_queue_id, 0, 0, 0, 0, 0, null);
begin
    -- Count from the first row, not from the floor: late rows count.
    select count(*) into v_count.ready_count
    from (
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.queue_id = p_queue_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.delayed_count
    from (
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.message_id
        from rowq_delayed d
        where d.queue_id = p_queue_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.leased_count
    from (
        select /*+ index_rs_asc(l rowq_leased_pk) */ l.place
        from rowq_leased l
        where l.queue_id = p_queue_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.dead_count
    from (
        select /*+ index_rs_asc(d rowq_dead_pk) */ d.message_id
        from rowq_dead d
        where d.queue_id = p_queue_id
        fetch first p_limit rows only
    ) h;
    select count(*) into v_count.blocked_count
    from (
        select /*+ index_rs_asc(g rowq_group_waiting_pk) */ g.message_id
        from rowq_group_waiting g
        where g.queue_id = p_queue_id
        union all
        select /*+ index_rs_asc(b rowq_blocked_pk) */ b.message_id
        from rowq_blocked b
        where b.queue_id = p_queue_id
        fetch first p_limit rows only
    ) h;
    v_count.oldest_seconds := internal_seconds_since(
        internal_oldest_ready(p_queue_id), sys_extract_utc(systimestamp)
    );
    return v_count;
end internal_count_messages;

function internal_oldest_ready(p_queue_id in number)
return timestamp
is
-- purpose   Return when the oldest message at the head of a lane was enqueued, or null.
    v_lanes  t_lanes := internal_open_lanes_of(p_queue_id);
    v_id     rowq_ready.message_id%type;
    v_head   timestamp(6);
    v_oldest timestamp(6);
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.queue_id, r.lane, r.seq, r.message_id;
begin
    for i in 1 .. v_lanes.count loop
        v_id := null;
        open lane_rows(v_lanes(i).lane, v_lanes(i).floor_seq);
        fetch lane_rows into v_id;
        close lane_rows;
        select min(m.enqueued_at) into v_head
        from rowq_message m
        where m.queue_id = p_queue_id
          and m.message_id = v_id;
        v_oldest := least(coalesce(v_oldest, v_head), coalesce(v_head, v_oldest));
    end loop;
    return v_oldest;
end internal_oldest_ready;

procedure internal_health_queue(
    p_queue_id       in number,
    p_queue_name     in varchar2,
    p_is_paused      in boolean,
    p_result_seconds in number,
    p_history_days   in number,
    p_checks         in out nocopy rowq_checks
)
is
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
        internal_from_microseconds(internal_read_floor(p_queue_id, -8 /* history */));

    procedure add_check(
        p_name in varchar2, p_value in number, p_warning in number, p_critical in number,
        p_detail in varchar2
    )
    is
    begin
        p_checks.extend;
        p_checks(p_checks.last) := rowq_check(
            p_name, p_queue_name, coalesce(p_value, 0), p_warning, p_critical, p_detail
        );
    end add_check;
begin
    add_check(
        'oldest_ready', internal_seconds_since(internal_oldest_ready(p_queue_id), v_now), 300, 3600,
        'seconds the oldest ready message has waited'
        || case when p_is_paused then '; the queue is paused' end
    );

    select count(*) into v_dead
    from (
        select d.message_id
        from rowq_dead d
        where d.queue_id = p_queue_id
        fetch first 1000 rows only
    ) h;
    add_check(
        'dead_messages', v_dead, 1, 1000,
        'dead messages, counted up to 1000; see list_dead and reset'
    );

    select min(d.due_at) into v_due_at
    from rowq_delayed d
    where d.queue_id = p_queue_id
      and d.due_at <= v_now;
    add_check(
        'overdue_delayed', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds the oldest due message has waited to be promoted; call maintain every second'
    );

    select min(c.lease_until) into v_lease_until
    from rowq_claim c
    where c.queue_id = p_queue_id
      and c.lease_until <= v_now;
    add_check(
        'expired_leases', internal_seconds_since(v_lease_until, v_now), 30, 300,
        'seconds the oldest expired lease has waited to be reaped; call maintain every second'
    );

    select count(*) into v_waiting
    from (
        select /*+ leading(d s b) use_nl(s) use_nl(b) index(s rowq_successor_pk)
                   index(b rowq_blocked_pk) */
               s.message_id
        from rowq_dead d
        join rowq_successor s
          on s.queue_id = d.queue_id
         and s.predecessor_id = d.message_id
        join rowq_blocked b
          on b.queue_id = s.queue_id
         and b.message_id = s.message_id
        where d.queue_id = p_queue_id
        fetch first 1000 rows only
    ) h;
    add_check(
        'waits_for_dead', v_waiting, 1, 1000,
        'messages blocked by dead messages, counted up to 1000; reset or cancel the dead ones'
    );

    select min(r.due_at) into v_due_at
    from rowq_deferred r
    where r.queue_id = p_queue_id
      and r.due_at <= v_now;
    add_check(
        'overdue_groups', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds deferred work has waited for a transaction to end or for maintain'
    );

    select min(e.expires_at) into v_due_at
    from rowq_expiry e
    where e.queue_id = p_queue_id
      and e.expires_at <= v_now;
    add_check(
        'overdue_expiries', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds an expired message has waited for maintain or for the session that holds it'
    );

    select min(r.finished_at) into v_finished_at
    from rowq_result r
    where r.queue_id = p_queue_id
      and r.finished_at <= v_now;
    add_check(
        'overdue_results',
        greatest(internal_seconds_since(v_finished_at, v_now) - p_result_seconds, 0), 300, 3600,
        'seconds the oldest result has been kept beyond result_seconds; call maintain every'
        || ' second'
    );

    select /*+ index(h rowq_history_pk) */ min(h.ended_at) into v_ended_at
    from rowq_history h
    where h.queue_id = p_queue_id
      and h.ended_at >= v_history_from
      and h.ended_at <= v_now;
    add_check(
        'overdue_history',
        greatest(internal_seconds_since(v_ended_at, v_now) - p_history_days * 86400, 0), 3600,
        86400,
        'seconds the oldest attempt has been kept beyond history_days; call maintain every'
        || ' second'
    );

    select min(case when s.next_run_at <= v_now then s.next_run_at end), count(s.last_error)
    into v_due_at, v_failed
    from rowq_schedule s
    where s.queue_id = p_queue_id;
    add_check(
        'overdue_schedules', internal_seconds_since(v_due_at, v_now), 30, 300,
        'seconds the oldest due schedule has waited; call maintain every second, or end the '
        || 'transaction that has locked the schedule or opened its group'
    );
    add_check(
        'failed_schedules', v_failed, 1, 1000,
        'schedules whose last tick enqueued no message; see list_schedules'
    );
end internal_health_queue;

procedure internal_health_server(p_checks in out nocopy rowq_checks)
is
-- purpose   Append the checks that concern all queues.
    -- ORA-00942, ORA-01031 and, from 23ai, ORA-41900: the owner has no right to these views.
    e_no_view exception;
    e_no_right exception;
    pragma exception_init(e_no_view, -942);
    pragma exception_init(e_no_right, -1031);
    e_no_right_named exception;
    pragma exception_init(e_no_right_named, -41900);
    v_seconds  number;
    v_session  varchar2(200 char);
    v_horizon  varchar2(500 char) := 'no transaction is older than 1 second';
    v_error    rowq_meta.value%type;
    v_error_at rowq_meta.changed_at%type;
    v_message_id number;
    v_claim_id number;
    v_queue_id number;

    procedure compare_sequence(p_name in varchar2, p_newest in number)
    is
        v_last constant number := internal_last_number('rowq_' || p_name || '_seq');
    begin
        p_checks.extend;
        p_checks(p_checks.last) := rowq_check(
            'sequence_behind', null, greatest(p_newest - v_last, 0), 1, 1,
            p_name || case
                when p_newest > v_last then
                    ' numbers would repeat numbers in use; call after_failover'
                    || ' (rowq after-failover)'
                else ' numbers are ahead of those stored'
            end
        );
    end compare_sequence;
begin
    begin
        -- Dynamic SQL, so that the package compiles without a right to these views.
        execute immediate q'[
            select max((sysdate - t.start_date) * 86400),
                   max(s.sid || ',' || s.serial#) keep (dense_rank first order by t.start_date)
            from v$transaction t
            join v$session s on s.taddr = t.addr
            where s.sid <> to_number(sys_context('userenv', 'sid'))
        ]' into v_seconds, v_session;
        if v_seconds >= 1 then
            v_horizon := 'session ' || v_session
                || ' has the oldest open transaction; its messages stay locked until it ends';
        end if;
    exception
        when e_no_view or e_no_right or e_no_right_named then
            v_horizon := 'unknown: grant the owner of rowq select on v_$transaction and v_$session';
    end;
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'clean_up_horizon', null, coalesce(v_seconds, 0), 300, 3600, v_horizon
    );

    select max(m.value) keep (dense_rank last order by m.changed_at), max(m.changed_at)
    into v_error, v_error_at
    from rowq_meta m
    where m.name like 'maintain_fault.%';
    p_checks.extend;
    p_checks(p_checks.last) := rowq_check(
        'maintain_fault', null, case when v_error is null then 0 else 1 end, 1, 1,
        case
            when v_error is null then 'maintain has failed for no queue'
            else substr(
                to_char(v_error_at, 'yyyy-mm-dd"T"hh24:mi:ss', 'nls_calendar=gregorian') || 'Z '
                || v_error, 1, 500
            )
        end
    );

    -- Read the sequences after the rows, so that they are not older.
    internal_stored_numbers(v_message_id, v_claim_id, v_queue_id);
    compare_sequence('claim', v_claim_id);
    compare_sequence('message', v_message_id);
    compare_sequence('queue', v_queue_id);
end internal_health_server;

procedure internal_stored_numbers(
    p_message_id out number,
    p_claim_id   out number,
    p_queue_id   out number
)
is
-- purpose   Return the newest numbers of messages, claims and queues that the tables show, or 0.
    v_id        number;
    v_queue_ids t_numbers;
begin
    p_message_id := 0;
    p_claim_id := 0;
    p_queue_id := 0;
    select q.queue_id bulk collect into v_queue_ids
    from rowq_queue q;
    for i in 1 .. v_queue_ids.count loop
        p_queue_id := greatest(p_queue_id, v_queue_ids(i));
        select max(m.message_id) into v_id
        from rowq_message m
        where m.queue_id = v_queue_ids(i);
        p_message_id := greatest(p_message_id, coalesce(v_id, 0));
        select max(r.message_id) into v_id
        from rowq_result r
        where r.queue_id = v_queue_ids(i);
        p_message_id := greatest(p_message_id, coalesce(v_id, 0));
        select max(h.message_id) into v_id
        from rowq_history h
        where h.queue_id = v_queue_ids(i);
        p_message_id := greatest(p_message_id, coalesce(v_id, 0));
        select max(c.claim_id) into v_id
        from rowq_claim c
        where c.queue_id = v_queue_ids(i);
        p_claim_id := greatest(p_claim_id, coalesce(v_id, 0));
        select max(f.finish_id) into v_id
        from rowq_finished f
        where f.queue_id = v_queue_ids(i);
        p_claim_id := greatest(p_claim_id, coalesce(v_id, 0));
    end loop;
end internal_stored_numbers;

function internal_last_number(p_sequence in varchar2)
return number
is
-- purpose   Return the newest number that a sequence has given out or reserved for a cache.
    v_last number;
begin
    -- last_number is the first number outside all sessions' caches.
    select max(s.last_number) - 1 into v_last
    from user_sequences s
    where s.sequence_name = upper(p_sequence);
    return coalesce(v_last, 0);
end internal_last_number;

procedure internal_advance_sequence(p_sequence in varchar2, p_last in number)
is
-- purpose   Let a sequence continue above p_last.
-- commits   an autonomous transaction, as DDL commits; never the caller's
    pragma autonomous_transaction;
begin
    execute immediate 'alter sequence ' || p_sequence || ' restart start with '
        || internal_number_text(p_last + 1);
    commit;
end internal_advance_sequence;
