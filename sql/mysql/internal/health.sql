-- Health: what health and queue_stats measure.
--
-- Each check returns its name, the queue, a value, and the thresholds for warning and critical.
-- health starts at the floor of each table. queue_stats counts up to max_count. Checks of the
-- server name the session or transaction that an operator has to end.
--
--   queue_stats -> count_messages, oldest_ready
--   health -> health_numbers -> add_number_check, newest_numbers, next_numbers
--   health -> health_server
--   after_failover, health_numbers -> newest_numbers -> next_numbers, newest_numbers_of
--   health -> health_queue -> oldest_ready
--
-- Reads blocked, claim, dead, delayed, expiry, group_waiting, history, lane, message, meta, queue,
-- ready, deferred, result, schedule.

drop procedure if exists rowq.internal_count_messages;

delimiter //
create procedure rowq.internal_count_messages(
    p_queue_id int,
    p_limit int,
    out p_ready bigint,
    out p_delayed bigint,
    out p_leased bigint,
    out p_dead bigint,
    out p_blocked bigint
)
sql security definer
reads sql data
begin
-- purpose   Count the messages of a queue by state, each up to p_limit.
    -- Count from the first row, not from the floor: late rows count.
    select count(*) into p_ready
    from (
        select r.attempt
        from rowq.ready r force index (primary)
        where r.queue_id = p_queue_id
          and r.message_id > 0
        limit p_limit
    ) h;
    select count(*) into p_delayed
    from (
        select d.attempt
        from rowq.delayed d force index (primary)
        where d.queue_id = p_queue_id
          and d.message_id > 0
        limit p_limit
    ) h;
    select least(
               coalesce(sum(coalesce(json_length(h.messages), h.last_id - h.first_id + 1)), 0),
               p_limit
           )
    into p_leased
    from (
        select c.messages, c.first_id, c.last_id
        from rowq.claim c force index (primary)
        where c.queue_id = p_queue_id
          and c.claim_id > 0
        limit p_limit
    ) h;
    select count(*) into p_dead
    from (
        select d.attempt
        from rowq.dead d force index (primary)
        where d.queue_id = p_queue_id
        limit p_limit
    ) h;
    select count(*) into p_blocked
    from (
        (
            select g.lane
            from rowq.group_waiting g force index (primary)
            where g.queue_id = p_queue_id
              and g.message_id > 0
            limit p_limit
        )
        union all
        (
            select b.lane
            from rowq.blocked b force index (primary)
            where b.queue_id = p_queue_id
            limit p_limit
        )
        limit p_limit
    ) h;
end//
delimiter ;

drop procedure if exists rowq.internal_oldest_ready;

delimiter //
create procedure rowq.internal_oldest_ready(p_queue_id int, out p_enqueued_at datetime(6))
sql security definer
reads sql data
begin
-- purpose   Return when the oldest message at the head of a lane was enqueued, or null.
    declare v_lane smallint default -32768;
    declare v_next, v_attempt smallint;
    declare v_is_hidden boolean default false;
    declare v_floor, v_message_id bigint;
    declare v_head datetime(6);
    set p_enqueued_at = null;

    lanes: loop
        set v_next = null;
        select l.lane, l.floor into v_next, v_floor
        from rowq.lane l force index (primary)
        where l.queue_id = p_queue_id
          and l.lane > v_lane
          and (l.is_open or v_is_hidden)
        order by l.queue_id, l.lane
        limit 1;
        if v_next is null then
            leave lanes;
        end if;
        if v_next < 0 then
            -- Read closed lanes: an open transaction keeps other sessions from opening a lane with
            -- messages.
            set v_is_hidden = true, v_lane = -1;
            iterate lanes;
        end if;

        set v_lane = v_next, v_message_id = null, v_head = null;
        select r.message_id, r.attempt into v_message_id, v_attempt
        from rowq.ready r force index (primary)
        where r.queue_id = p_queue_id
          and r.lane = v_lane
          and r.seq >= v_floor
          and r.seq < 9223372036854775806
        order by r.queue_id, r.lane, r.seq, r.message_id
        limit 1;
        select m.enqueued_at into v_head
        from rowq.message m force index (primary)
        where m.message_id = v_message_id;
        set p_enqueued_at = least(coalesce(p_enqueued_at, v_head), coalesce(v_head, p_enqueued_at));
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_health_numbers;

delimiter //
create procedure rowq.internal_health_numbers(inout p_checks longtext)
sql security definer
reads sql data
begin
-- purpose   Append a check per number generator: is it behind the newest number stored?
    declare v_message_id, v_claim_id, v_queue_id, v_next_id, v_next_claim, v_next_queue bigint;

    call rowq.internal_newest_numbers(v_message_id, v_claim_id, v_queue_id);
    -- Read the next numbers after the rows, so that they are not older.
    call rowq.internal_next_numbers(v_next_id, v_next_claim, v_next_queue);
    call rowq.internal_add_number_check('claim', v_claim_id - v_next_claim + 1, p_checks);
    call rowq.internal_add_number_check('message', v_message_id - v_next_id + 1, p_checks);
    call rowq.internal_add_number_check('queue', v_queue_id - v_next_queue + 1, p_checks);
end//
delimiter ;

drop procedure if exists rowq.internal_add_number_check;

delimiter //
create procedure rowq.internal_add_number_check(
    p_name varchar(20),
    p_behind bigint,
    inout p_checks longtext
)
sql security definer
reads sql data
begin
-- purpose   Append the check of a number generator.
    set p_checks = concat_ws(',', p_checks, json_array(
        'sequence_behind', null, greatest(p_behind, 0), 1, 1,
        concat(
            p_name,
            if(
                p_behind > 0,
                ' numbers would repeat numbers in use; call after_failover (rowq after-failover)',
                ' numbers are ahead of those stored'
            )
        )
    ));
end//
delimiter ;

drop procedure if exists rowq.internal_next_numbers;

delimiter //
create procedure rowq.internal_next_numbers(
    out p_message_id bigint,
    out p_claim_id bigint,
    out p_queue_id bigint
)
sql security definer
reads sql data
begin
-- purpose   Return the numbers that the next message, claim and queue would get.
-- differs   other engines have sequences
    set p_message_id = null, p_queue_id = null;
    select t.auto_increment into p_message_id
    from information_schema.tables t
    where t.table_schema = 'rowq'
      and t.table_name = 'message';
    select t.auto_increment into p_queue_id
    from information_schema.tables t
    where t.table_schema = 'rowq'
      and t.table_name = 'queue';
    set p_message_id = coalesce(p_message_id, 1),
        p_queue_id = coalesce(p_queue_id, 1),
        p_claim_id = uuid_short() & 9007199254740991;
end//
delimiter ;

drop procedure if exists rowq.internal_newest_numbers;

delimiter //
create procedure rowq.internal_newest_numbers(
    out p_message_id bigint,
    out p_claim_id bigint,
    out p_queue_id bigint
)
sql security definer
reads sql data
begin
-- purpose   Return the newest numbers stored; messages and claims only if not below the next numbers.
    declare v_next_id, v_next_claim, v_next_queue bigint;
    declare v_queue_id int;
    set p_message_id = 0, p_claim_id = 0, p_queue_id = 0;

    call rowq.internal_next_numbers(v_next_id, v_next_claim, v_next_queue);
    queues: loop
        set v_queue_id = null;
        select q.queue_id into v_queue_id
        from rowq.queue q force index (primary)
        where q.queue_id > p_queue_id
        order by q.queue_id
        limit 1;
        if v_queue_id is null then
            leave queues;
        end if;
        set p_queue_id = v_queue_id;
        call rowq.internal_newest_numbers_of(
            v_queue_id, v_next_id, v_next_claim, p_message_id, p_claim_id
        );
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_health_queue;

delimiter //
create procedure rowq.internal_health_queue(p_queue_id int, out p_checks longtext)
sql security definer
reads sql data
begin
-- purpose   Append the checks of a queue.
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_oldest, v_paused_at, v_due_at, v_lease_until, v_deferred_at, v_run_at datetime(6);
    declare v_finished_at, v_expires_at, v_ended_at datetime(6);
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_delayed_from, v_deferred_from, v_expiry_from, v_result_from datetime(6);
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
    where q.queue_id = p_queue_id;
    -- Start each scan at the first possible live row, above the dead rows.
    select max(if(l.lane = -1 /* claim */, l.floor, 0)),
           v_epoch + interval max(if(l.lane = -2 /* delayed */, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -4 /* deferred */, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -6 /* expiry */, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -7 /* result */, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -8 /* history */, l.floor, 0)) microsecond
    into v_claim_from, v_delayed_from, v_deferred_from, v_expiry_from, v_result_from,
         v_history_from
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane between -8 /* history */ and -1 /* claim */;

    call rowq.internal_oldest_ready(p_queue_id, v_oldest);
    set p_checks = concat_ws(',', p_checks, json_array(
        'oldest_ready', p_queue_id,
        coalesce(timestampdiff(microsecond, v_oldest, v_now) / 1e6, 0), 300, 3600,
        concat(
            'seconds the oldest ready message has waited',
            if(v_paused_at is null, '', '; the queue is paused')
        )
    ));

    select count(*) into v_dead
    from (
        select d.attempt
        from rowq.dead d force index (primary)
        where d.queue_id = p_queue_id
        limit 1000
    ) h;
    set p_checks = concat_ws(',', p_checks, json_array(
        'dead_messages', p_queue_id, v_dead, 1, 1000,
        'dead messages, counted up to 1000; see list_dead and reset'
    ));

    select d.due_at, d.attempt into v_due_at, v_attempt
    from rowq.delayed d force index (primary)
    where d.queue_id = p_queue_id
      and d.due_at >= v_delayed_from
      and d.due_at <= v_now
    order by d.queue_id, d.due_at, d.message_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_delayed', p_queue_id,
        coalesce(timestampdiff(microsecond, v_due_at, v_now) / 1e6, 0), 30, 300,
        'seconds the oldest due message has waited to be promoted; call maintain every second'
    ));

    select min(c.lease_until) into v_lease_until
    from rowq.claim c force index (primary)
    where c.queue_id = p_queue_id
      and c.claim_id > 0
      and c.claim_id >= v_claim_from
      and c.lease_until <= v_now;
    set p_checks = concat_ws(',', p_checks, json_array(
        'expired_leases', p_queue_id,
        coalesce(timestampdiff(microsecond, v_lease_until, v_now) / 1e6, 0), 30, 300,
        'seconds the oldest expired lease has waited to be reaped; call maintain every second'
    ));

    select count(*) into v_waiting
    from (
        select s.message_id
        from (
            select d.message_id, d.attempt
            from rowq.dead d force index (primary)
            where d.queue_id = p_queue_id
            order by d.queue_id desc, d.message_id desc
            limit 10000
        ) n
        straight_join rowq.successor s force index (primary)
            on s.queue_id = p_queue_id
           and s.predecessor_id = n.message_id
        straight_join rowq.blocked b force index (primary)
            on b.queue_id = s.queue_id
           and b.message_id = s.message_id
        limit 1000
    ) h;
    set p_checks = concat_ws(',', p_checks, json_array(
        'waits_for_dead', p_queue_id, v_waiting, 1, 1000,
        'messages blocked by the newest 10000 dead messages, counted up to 1000; '
        'reset or cancel the dead ones'
    ));

    select r.due_at, r.is_hint into v_deferred_at, v_is_hint
    from rowq.deferred r force index (primary)
    where r.queue_id = p_queue_id
      and r.due_at >= v_deferred_from
      and r.due_at <= v_now
    order by r.queue_id, r.due_at, r.deferred_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_groups', p_queue_id,
        coalesce(timestampdiff(microsecond, v_deferred_at, v_now) / 1e6, 0), 30, 300,
        'seconds deferred work has waited for a transaction to end or for maintain'
    ));

    select e.expires_at, e.message_id into v_expires_at, v_message_id
    from rowq.expiry e force index (primary)
    where e.queue_id = p_queue_id
      and e.expires_at >= v_expiry_from
      and e.expires_at <= v_now
    order by e.queue_id, e.expires_at, e.expiry_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_expiries', p_queue_id,
        coalesce(timestampdiff(microsecond, v_expires_at, v_now) / 1e6, 0), 30, 300,
        'seconds an expired message has waited for maintain or for the session that holds it'
    ));

    select r.finished_at, r.state = 'dead' into v_finished_at, v_is_hint
    from rowq.result r force index (result_finished_ix)
    where r.queue_id = p_queue_id
      and r.finished_at >= v_result_from
      and r.finished_at <= v_now
    order by r.queue_id, r.finished_at
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_results', p_queue_id,
        greatest(
            coalesce(timestampdiff(microsecond, v_finished_at, v_now) / 1e6, 0) - v_result_seconds,
            0
        ),
        300, 3600,
        'seconds the oldest result has been kept beyond result_seconds; call maintain '
        'every second'
    ));

    select h.ended_at, h.attempt into v_ended_at, v_attempt
    from rowq.history h force index (primary)
    where h.queue_id = p_queue_id
      and h.ended_at >= v_history_from
      and h.ended_at <= v_now
    order by h.queue_id, h.ended_at, h.message_id, h.claim_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_history', p_queue_id,
        greatest(
            coalesce(timestampdiff(microsecond, v_ended_at, v_now) / 1e6, 0)
            - v_history_days * 86400,
            0
        ),
        3600, 86400,
        'seconds the oldest attempt has been kept beyond history_days; call maintain '
        'every second'
    ));

    select min(if(s.next_run_at <= v_now, s.next_run_at, null)), count(s.last_error)
    into v_run_at, v_failed
    from rowq.schedule s force index (primary)
    where s.queue_id = p_queue_id;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_schedules', p_queue_id,
        coalesce(timestampdiff(microsecond, v_run_at, v_now) / 1e6, 0), 30, 300,
        'seconds the oldest due schedule has waited; call maintain every second, or end the '
        'transaction that has locked the schedule'
    ));
    set p_checks = concat_ws(',', p_checks, json_array(
        'failed_schedules', p_queue_id, v_failed, 1, 1000,
        'schedules whose last tick enqueued no message; see list_schedules'
    ));
end//
delimiter ;

drop procedure if exists rowq.internal_health_server;

delimiter //
create procedure rowq.internal_health_server(inout p_checks longtext)
sql security definer
reads sql data
begin
-- purpose   Append the checks that concern the whole server.
    declare v_age, v_prepared_age double default 0;
    declare v_length, v_used double default 0;
    declare v_table varchar(64);
    declare v_thread, v_prepared bigint;
    declare v_is_allowed boolean default true;
    declare v_failed int;
    declare v_error varchar(500);
    -- Some clouds grant no account the PROCESS privilege, which other sessions require (1227).
    declare continue handler for 1227, 1142, 1044 set v_is_allowed = false;

    -- trx_started is in the time zone of the machine, so convert the current time.
    select t.trx_mysql_thread_id,
           timestampdiff(
               second, t.trx_started, convert_tz(utc_timestamp(), '+00:00', 'SYSTEM')
           )
    into v_thread, v_age
    from information_schema.innodb_trx t
    where t.trx_mysql_thread_id <> connection_id()
    order by t.trx_started
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'clean_up_horizon', null, greatest(v_age, 0), 300, 3600,
        case
            when not v_is_allowed then concat('unknown: grant process on *.* to ', current_user())
            when v_thread is null or v_age < 1 then 'no transaction is older than 1 second'
            else concat(
                if(v_thread = 0, 'a prepared XA transaction', concat('connection ', v_thread)),
                ' prevents cleanup of dead rows; rowq stays fast, other tables bloat'
            )
        end
    ));

    -- A prepared transaction outlives its session and a restart. Its locked tables are not visible.
    select t.trx_id,
           timestampdiff(
               second, t.trx_started, convert_tz(utc_timestamp(), '+00:00', 'SYSTEM')
           )
    into v_prepared, v_prepared_age
    from information_schema.innodb_trx t
    where t.trx_mysql_thread_id = 0
      and t.trx_state <> 'ROLLING BACK'
      and (t.trx_rows_locked > 0 or t.trx_rows_modified > 0)
    order by t.trx_started
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'prepared_transactions', null, greatest(v_prepared_age, 0), 30, 300,
        case
            when not v_is_allowed then concat('unknown: grant process on *.* to ', current_user())
            when v_prepared is null
                then 'seconds a prepared XA transaction has kept rows locked'
            else 'seconds a prepared XA transaction has kept rows locked, possibly of rowq; '
                'find it with xa recover, end it with xa commit or xa rollback'
        end
    ));

    select coalesce(max(m.count), 0) into v_length
    from information_schema.innodb_metrics m
    where m.name = 'trx_rseg_history_len';
    set p_checks = concat_ws(',', p_checks, json_array(
        'purge_lag', null, greatest(v_length, 0), 1000000, 100000000,
        if(
            v_is_allowed, 'transactions whose dead rows are not purged yet',
            concat('unknown: grant process on *.* to ', current_user())
        )
    ));

    select h.table_name, h.used into v_table, v_used
    from (
        select t.table_name,
               1e2 * t.auto_increment / if(t.table_name = 'queue', 2147483647, 9223372036854775807)
                   as used
        from information_schema.tables t
        where t.table_schema = 'rowq'
          and t.table_name in ('queue', 'message', 'finished')
    ) h
    order by h.used desc
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'sequence_near_end', null, coalesce(v_used, 0), 50, 90,
        concat('per cent of the ids of rowq.', coalesce(v_table, 'message'), ' are used')
    ));

    select count(*),
           min(concat(
               'maintain has failed for queue ', convert(q.queue_name using utf8mb4), ': ', m.value
           ))
    into v_failed, v_error
    from rowq.meta m
    straight_join rowq.queue q on m.name = concat('maintain_fault.', q.queue_id);
    set p_checks = concat_ws(',', p_checks, json_array(
        'maintain_fault', null, v_failed, 1, 1,
        left(coalesce(v_error, 'maintain has failed for no queue'), 500)
    ));
end//
delimiter ;

drop procedure if exists rowq.internal_newest_numbers_of;

delimiter //
create procedure rowq.internal_newest_numbers_of(
    p_queue_id int,
    p_next_id bigint,
    p_next_claim bigint,
    inout p_message_id bigint,
    inout p_claim_id bigint
)
sql security definer
reads sql data
begin
-- purpose   Raise p_message_id and p_claim_id to a queue's newest ids that are not below the next numbers.
-- differs   the table of messages is always ahead of its own ids here
    -- uuid_short advances by this much for each second between two starts of a server. A server
    -- that started earlier has lower numbers and never reaches those stored; after a start in the
    -- same second it repeats them.
    declare c_second int default 16777216;
    declare v_state varchar(20);
    declare v_message_id, v_claim_id bigint;
    declare v_lease_until datetime(6);

    -- Start each scan at the next number, above all rows of the queue, dead ones included.
    select r.message_id, r.state into v_message_id, v_state
    from rowq.result r force index (primary)
    where r.queue_id = p_queue_id
      and r.message_id >= p_next_id
    order by r.queue_id, r.message_id
    limit 1;
    if v_message_id is not null then
        select greatest(p_message_id, r.message_id), r.state into p_message_id, v_state
        from rowq.result r force index (primary)
        where r.queue_id = p_queue_id
        order by r.queue_id desc, r.message_id desc
        limit 1;
    end if;

    set v_message_id = null;
    select h.message_id into v_message_id
    from rowq.history h force index (history_message_ix)
    where h.queue_id = p_queue_id
      and h.message_id >= p_next_id
    order by h.queue_id, h.message_id
    limit 1;
    if v_message_id is not null then
        select greatest(p_message_id, h.message_id) into p_message_id
        from rowq.history h force index (history_message_ix)
        where h.queue_id = p_queue_id
        order by h.queue_id desc, h.message_id desc
        limit 1;
    end if;

    select c.claim_id, c.lease_until into v_claim_id, v_lease_until
    from rowq.claim c force index (primary)
    where c.queue_id = p_queue_id
      and c.claim_id >= p_next_claim
    order by c.queue_id, c.claim_id
    limit 1;
    if v_claim_id < p_next_claim + c_second then
        select greatest(p_claim_id, c.claim_id), c.lease_until into p_claim_id, v_lease_until
        from rowq.claim c force index (primary)
        where c.queue_id = p_queue_id
          and c.claim_id < p_next_claim + c_second
        order by c.queue_id desc, c.claim_id desc
        limit 1;
    end if;
end//
delimiter ;
