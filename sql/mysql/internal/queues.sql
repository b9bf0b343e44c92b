-- Queues: settings, locks against drop_queue, and deletion.
--
-- Every call reads its queue's settings by name, once, and raises RQ701 if the queue does not
-- exist. A call that adds or moves messages also prevents drop_queue until its transaction ends.
-- drop_queue takes the opposite lock and fails with RQ705 after about a second, so calls never wait
-- long behind it.
--
-- The lock is the queue's row in queue_lock: shared by producers, exclusive for drop_queue.
--
--   create_queue -> add_queue_rows
--   alter_queue, pause_queue, resume_queue, ... -> refuse_queue
--   alter_queue, drop_queue, pause_queue, ... -> require_queue -> refuse_queue
--   drop_queue -> remove_queue -> refuse_not_empty, delete_queue
--   bind_topic, unbind_topic, purge_queue, ... -> lock_queue_shared -> refuse_queue
--   purge_queue -> purge_blocked, purge_group_waiting, purge_ready, purge_waiting
--
-- Writes archive, claim, delayed, expiry, finished, limit_lock, group_waiting, history, lane,
-- queue_lock, queue, ready, deferred, result, started. Only reads blocked, dead, dedup, message,
-- group_slot, schedule, successor, topic_binding, worker.

drop procedure if exists rowq.internal_add_queue_rows;

delimiter //
create procedure rowq.internal_add_queue_rows(p_queue_id int)
sql security definer
modifies sql data
begin
-- purpose   Insert the lock, lane and sentinel rows of a new queue.
-- locks     new rows only
-- differs   PostgreSQL opens lanes when they are first used and needs no sentinel rows
    declare v_lane smallint default 0;

    insert into rowq.queue_lock (queue_id) values (p_queue_id);
    insert into rowq.limit_lock (queue_id) values (p_queue_id);
    while v_lane < 20 do
        -- Most queues use only the tail of the default priority: open it now.
        insert into rowq.lane (queue_id, lane, is_open)
        values (p_queue_id, v_lane, v_lane = 11);
        insert into rowq.ready (queue_id, lane, seq, message_id)
        values
            (p_queue_id, v_lane, 9223372036854775806, 0),
            (p_queue_id, v_lane, 9223372036854775807, 0);
        set v_lane = v_lane + 1;
    end while;

    insert into rowq.lane (queue_id, lane)
    values
        (p_queue_id, -1 /* claim */), (p_queue_id, -2 /* delayed */),
        (p_queue_id, -3 /* finished */),
        (p_queue_id, -4 /* deferred */), (p_queue_id, -5 /* started */),
        (p_queue_id, -6 /* expiry */),
        (p_queue_id, -7 /* result */), (p_queue_id, -8 /* history */),
        (p_queue_id, -9 /* counted claim */), (p_queue_id, -20 /* waiters */);
    insert into rowq.delayed (queue_id, due_at, message_id, lane)
    values
        (p_queue_id, '9999-12-31 23:59:59.999998', 0, 11),
        (p_queue_id, '9999-12-31 23:59:59.999999', 0, 11);
    insert into rowq.group_waiting (queue_id, group_key, message_id, lane)
    values (p_queue_id, x'FF', 0, 11), (p_queue_id, x'FFFF', 0, 11);
    insert into rowq.deferred (queue_id, due_at, deferred_id, group_key)
    values
        (p_queue_id, '9999-12-31 23:59:59.999998', 0, ''),
        (p_queue_id, '9999-12-31 23:59:59.999999', 0, '');
    insert into rowq.expiry (queue_id, expires_at, expiry_id, message_id)
    values
        (p_queue_id, '9999-12-31 23:59:59.999998', 0, 0),
        (p_queue_id, '9999-12-31 23:59:59.999999', 0, 0);
    insert into rowq.result (queue_id, message_id, finished_at, state)
    values
        (p_queue_id, -1, '9999-12-31 23:59:59.999998', 'completed'),
        (p_queue_id, 0, '9999-12-31 23:59:59.999999', 'completed');
    insert into rowq.history (
        queue_id, ended_at, message_id, attempt, claim_id, leased_at, outcome
    )
    values
        (
            p_queue_id, '9999-12-31 23:59:59.999998', 0, 0, 0, '9999-12-31 00:00:00', 'completed'
        ),
        (
            p_queue_id, '9999-12-31 23:59:59.999999', 0, 0, 0, '9999-12-31 00:00:00', 'completed'
        );
    insert into rowq.claim (queue_id, claim_id, lease_until, messages)
    values
        (p_queue_id, -2, '9999-12-31 00:00:00', '[]'),
        (p_queue_id, -1, '9999-12-31 00:00:00', '[]');
    insert into rowq.started (queue_id, started_at, claim_id, messages)
    values
        (p_queue_id, '1970-01-01 00:00:00', -2, 0),
        (p_queue_id, '1970-01-01 00:00:00', -1, 0);
    insert into rowq.finished (queue_id, finish_id, finished_at, state, messages)
    values
        (p_queue_id, -2, '9999-12-31 00:00:00', 'completed', '[]'),
        (p_queue_id, -1, '9999-12-31 00:00:00', 'completed', '[]');
end//
delimiter ;

drop procedure if exists rowq.internal_refuse_queue;

delimiter //
create procedure rowq.internal_refuse_queue(p_queue_name longtext)
sql security definer
modifies sql data
begin
-- purpose   Raise the error for a missing or unknown queue name.
-- errors    RQ701 RQ711
    declare v_text varchar(128);
    if p_queue_name is null then
        call rowq.internal_refuse('queue_name is required');
    end if;
    set v_text = left(
        concat('RQ701 queue_not_found: queue "', left(p_queue_name, 100), '" does not exist'), 128
    );
    signal sqlstate '45701' set message_text = v_text;
end//
delimiter ;

drop procedure if exists rowq.internal_require_queue;

delimiter //
create procedure rowq.internal_require_queue(p_queue_name longtext, out p_queue_id int)
sql security definer
reads sql data
begin
-- purpose   Return the settings of a queue; raise an error if it does not exist.
-- errors    RQ701 RQ711
    set p_queue_id = null;
    select q.queue_id into p_queue_id
    from rowq.queue q
    where q.queue_name = cast(p_queue_name as binary);
    if p_queue_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_remove_queue;

delimiter //
create procedure rowq.internal_remove_queue(
    p_queue_id int,
    p_queue_name longtext,
    p_force boolean
)
sql security definer
modifies sql data
begin
-- purpose   Remove an empty queue, or with p_force any queue, if no session uses it.
-- locks     the queue, exclusively, the limit lock, then all rows of the queue; waits up to 1 s
-- errors    RQ704 RQ705
-- differs   PostgreSQL locks tables
    declare v_timeout bigint default @@session.innodb_lock_wait_timeout;
    declare v_queue_id int;
    declare exit handler for 1205
    begin
        set session innodb_lock_wait_timeout = v_timeout;
        signal sqlstate '45705'
            set message_text = 'RQ705 queue_busy: open transactions use the queue; retry';
    end;
    declare exit handler for sqlexception
    begin
        set session innodb_lock_wait_timeout = v_timeout;
        resignal;
    end;

    set session innodb_lock_wait_timeout = 1;
    -- Wait for open enqueues: their messages are not visible yet.
    select p.queue_id into v_queue_id
    from rowq.queue_lock p
    where p.queue_id = p_queue_id
    for update;
    -- Wait for dequeues that hold the limit lock, and block new ones.
    delete from rowq.limit_lock
    where queue_id = p_queue_id;
    if not p_force then
        call rowq.internal_refuse_not_empty(p_queue_id, p_queue_name);
    end if;
    call rowq.internal_delete_queue(p_queue_id);
    set session innodb_lock_wait_timeout = v_timeout;
end//
delimiter ;

drop procedure if exists rowq.internal_refuse_not_empty;

delimiter //
create procedure rowq.internal_refuse_not_empty(p_queue_id int, p_queue_name longtext)
sql security definer
modifies sql data
begin
-- purpose   Raise an error if a queue has messages or an archive.
-- locks     the first row of each kind, shared
-- errors    RQ704
    declare v_probe bigint;
    declare v_text varchar(128);

    -- A locking read sees current rows even under an old snapshot. The order is that of
    -- internal_delete_queue, for the same reason.
    select b.message_id into v_probe
    from rowq.blocked b force index (primary)
    where b.queue_id = p_queue_id
    limit 1
    lock in share mode;
    if v_probe is null then
        select d.message_id into v_probe
        from rowq.delayed d force index (primary)
        where d.queue_id = p_queue_id and d.message_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select g.message_id into v_probe
        from rowq.group_waiting g force index (primary)
        where g.queue_id = p_queue_id and g.message_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select r.message_id into v_probe
        from rowq.ready r force index (primary)
        where r.queue_id = p_queue_id and r.message_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select c.claim_id into v_probe
        from rowq.claim c force index (primary)
        where c.queue_id = p_queue_id and c.claim_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select d.message_id into v_probe
        from rowq.dead d force index (primary)
        where d.queue_id = p_queue_id
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select f.finish_id into v_probe
        from rowq.finished f force index (primary)
        where f.queue_id = p_queue_id and f.finish_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select a.message_id into v_probe
        from rowq.archive a
        where a.queue_id = p_queue_id
        limit 1
        lock in share mode;
    end if;

    if v_probe is not null then
        set v_text = left(
            concat(
                'RQ704 queue_not_empty: queue "', p_queue_name,
                '" has messages or an archive; use force to drop them'
            ),
            128
        );
        signal sqlstate '45704' set message_text = v_text;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_delete_queue;

delimiter //
create procedure rowq.internal_delete_queue(p_queue_id int)
sql security definer
modifies sql data
begin
-- purpose   Delete a queue and all of its rows.
-- locks     all rows of the queue
    -- Dequeue and complete hold no lock on the queue. They move messages from blocked to any other
    -- state, from delayed to group_waiting or ready, from group_waiting to ready, and from ready to
    -- claim or dead. In this order each statement waits for calls that have locked its rows, and
    -- later ones see where the messages went.
    delete m
    from rowq.blocked b force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = b.message_id
    where b.queue_id = p_queue_id;
    delete m
    from rowq.delayed d force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = d.message_id
    where d.queue_id = p_queue_id;
    delete m
    from rowq.group_waiting g force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = g.message_id
    where g.queue_id = p_queue_id;
    delete m
    from rowq.ready r force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = r.message_id
    where r.queue_id = p_queue_id;
    delete m
    from rowq.dead d force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = d.message_id
    where d.queue_id = p_queue_id;
    -- A range of message ids is read as an array of empty arrays.
    delete m
    from rowq.claim c force index (primary)
    straight_join json_table(
        coalesce(c.messages, concat('[[]', repeat(',[]', c.last_id - c.first_id), ']')),
        '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
    ) j
    straight_join rowq.message m force index (primary)
        on m.message_id = coalesce(j.message_id, c.first_id + j.place - 1)
    where c.queue_id = p_queue_id;
    delete m
    from rowq.finished f force index (primary)
    straight_join json_table(f.messages, '$[*]' columns (message_id bigint path '$[0]')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    where f.queue_id = p_queue_id;

    -- Without an index hint MariaDB 11 scans a table if most of its rows are the queue's, and waits
    -- for locked rows of other queues.
    delete r from rowq.ready r force index (primary) where r.queue_id = p_queue_id;
    delete d from rowq.delayed d force index (primary) where d.queue_id = p_queue_id;
    delete c from rowq.claim c force index (primary) where c.queue_id = p_queue_id;
    delete d from rowq.dead d force index (primary) where d.queue_id = p_queue_id;
    delete k from rowq.dedup k force index (primary) where k.queue_id = p_queue_id;
    delete b from rowq.blocked b force index (primary) where b.queue_id = p_queue_id;
    delete s from rowq.successor s force index (primary) where s.queue_id = p_queue_id;
    delete r from rowq.deferred r force index (primary) where r.queue_id = p_queue_id;
    delete g from rowq.group_waiting g force index (primary) where g.queue_id = p_queue_id;
    delete t from rowq.group_slot t force index (primary) where t.queue_id = p_queue_id;
    delete s from rowq.started s force index (primary) where s.queue_id = p_queue_id;
    delete e from rowq.expiry e force index (primary) where e.queue_id = p_queue_id;
    delete f from rowq.finished f force index (primary) where f.queue_id = p_queue_id;
    delete s from rowq.schedule s force index (primary) where s.queue_id = p_queue_id;
    delete b from rowq.topic_binding b force index (primary) where b.queue_id = p_queue_id;
    delete w from rowq.worker w force index (primary) where w.queue_id = p_queue_id;
    delete r from rowq.result r force index (primary) where r.queue_id = p_queue_id;
    delete h from rowq.history h force index (primary) where h.queue_id = p_queue_id;
    delete from rowq.archive where queue_id = p_queue_id;
    delete l from rowq.lane l force index (primary) where l.queue_id = p_queue_id;
    delete from rowq.queue_lock where queue_id = p_queue_id;
    delete from rowq.queue where queue_id = p_queue_id;
end//
delimiter ;

drop procedure if exists rowq.internal_lock_queue_shared;

delimiter //
create procedure rowq.internal_lock_queue_shared(p_queue_id int, p_queue_name longtext)
sql security definer
modifies sql data
begin
-- purpose   Prevent a queue from being dropped while messages are added or moved.
-- locks     the queue's row in queue_lock, shared; waits for an open drop
-- errors    RQ701
-- differs   on PostgreSQL the first insert waits for a drop
    declare v_queue_id int;
    -- Lock the row by its full key: this locks no gap and sees the current row under an old
    -- snapshot.
    select p.queue_id into v_queue_id
    from rowq.queue_lock p
    where p.queue_id = p_queue_id
    lock in share mode;
    if v_queue_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_purge_blocked;

delimiter //
create procedure rowq.internal_purge_blocked(
    p_queue_id int,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- purpose   Delete up to p_limit blocked messages; null means all.
-- locks     blocked rows, skipping locked ones; message and dedup rows
    declare c_step int default 5000;
    declare v_after bigint default 0;
    declare v_step int;
    declare v_seen, v_messages, v_ids longtext;
    set p_removed = 0;

    steps: loop
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step));
        if v_step <= 0 then
            leave steps;
        end if;
        -- Read rows without locks, then lock them by their full keys, so that no gap is locked.
        select json_arrayagg(h.message_id), max(h.message_id) into v_seen, v_after
        from (
            select b.message_id, b.lane
            from rowq.blocked b force index (primary)
            where b.queue_id = p_queue_id
              and b.message_id > v_after
            order by b.queue_id, b.message_id
            limit v_step
        ) h;
        if v_seen is null then
            leave steps;
        end if;

        call rowq.internal_pop_blocked(p_queue_id, v_seen, v_messages, v_ids);
        if v_messages is not null then
            call rowq.internal_finish(
                p_queue_id, 0, true, v_messages, v_ids, null, p_owns_transaction, 'cancelled'
            );
            set p_removed = p_removed + json_length(v_messages);
        end if;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_purge_group_waiting;

delimiter //
create procedure rowq.internal_purge_group_waiting(
    p_queue_id int,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- purpose   Delete up to p_limit messages that wait in groups; null means all.
-- locks     group_waiting rows, skipping locked ones; message and dedup rows
    declare c_step int default 5000;
    declare v_after varbinary(800) default '';
    declare v_after_id bigint default 0;
    declare v_step int;
    declare v_seen, v_messages, v_ids longtext;
    set p_removed = 0;

    steps: loop
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step));
        if v_step <= 0 then
            leave steps;
        end if;
        -- Read rows without locks, then lock them by their full keys, so that no gap is locked.
        select json_arrayagg(h.message_id) into v_seen
        from (
            select g.group_key, g.message_id, g.lane
            from rowq.group_waiting g force index (primary)
            where g.queue_id = p_queue_id
              and g.group_key >= v_after
              and g.group_key < x'FF'
              and (g.group_key > v_after or g.message_id > v_after_id)
            order by g.queue_id, g.group_key, g.message_id
            limit v_step
        ) h;
        if v_seen is null then
            leave steps;
        end if;
        set v_after_id = json_extract(v_seen, concat('$[', json_length(v_seen) - 1, ']'));
        select m.group_key into v_after
        from rowq.message m force index (primary)
        where m.message_id = v_after_id;

        call rowq.internal_pop_group_waiting(p_queue_id, v_seen, v_messages, v_ids);
        if v_messages is not null then
            call rowq.internal_finish(
                p_queue_id, 0, true, v_messages, v_ids, null, p_owns_transaction, 'cancelled'
            );
            set p_removed = p_removed + json_length(v_messages);
        end if;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_purge_ready;

delimiter //
create procedure rowq.internal_purge_ready(
    p_queue_id int,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- purpose   Delete up to p_limit ready messages, lane by lane; null means all.
-- locks     ready rows, skipping locked ones; message and dedup rows
    declare c_step int default 5000;
    declare v_lane smallint default 0;
    declare v_from bigint default 0;
    declare v_step int;
    declare v_messages longtext;
    set p_removed = 0;

    lanes: while v_lane < 20 do
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step));
        if v_step <= 0 then
            leave lanes;
        end if;
        call rowq.internal_lock_ready(
            p_queue_id, v_lane, v_from, v_step, p_owns_transaction, v_messages
        );
        if v_messages is null then
            set v_lane = v_lane + 1, v_from = 0;
            iterate lanes;
        end if;
        -- Continue after the last row: the index still holds the deleted rows before it.
        set v_from = json_extract(
            v_messages, concat('$[', json_length(v_messages) - 1, '][3]')
        );
        call rowq.internal_delete_ready(p_queue_id, v_messages);
        call rowq.internal_finish(
            p_queue_id, 0, true, v_messages, null, null, p_owns_transaction, 'cancelled'
        );
        set p_removed = p_removed + json_length(v_messages);
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_purge_waiting;

delimiter //
create procedure rowq.internal_purge_waiting(
    p_queue_id int,
    p_of_dead boolean,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- purpose   Delete up to p_limit delayed or dead messages; null means all.
-- locks     delayed or dead rows, skipping locked ones; message and dedup rows
    declare c_step int default 5000;
    declare v_after datetime(6) default '1970-01-01 00:00:00';
    declare v_before datetime(6);
    declare v_after_id bigint default 0;
    declare v_step int;
    declare v_ids, v_messages, v_without_slot, v_keyless longtext;
    set p_removed = 0;

    steps: loop
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step)), v_before = v_after;
        if v_step <= 0 then
            leave steps;
        end if;
        if p_of_dead then
            select json_arrayagg(h.message_id), max(h.message_id) into v_ids, v_after_id
            from (
                select d.message_id
                from rowq.dead d force index (primary)
                where d.queue_id = p_queue_id
                  and d.message_id > v_after_id
                order by d.queue_id, d.message_id
                limit v_step
            ) h;
        else
            select json_arrayagg(h.message_id), max(h.due_at) into v_ids, v_after
            from (
                select d.message_id, d.due_at
                from rowq.delayed d force index (primary)
                where d.queue_id = p_queue_id
                  and d.due_at >= v_after
                  and d.message_id > 0
                order by d.queue_id, d.due_at, d.message_id
                limit v_step
            ) h;
        end if;
        if v_ids is null then
            leave steps;
        end if;

        call rowq.internal_pop_waiting(p_queue_id, v_ids, v_messages, v_without_slot, v_keyless);
        if v_messages is not null then
            call rowq.internal_finish(
                p_queue_id, 0, true, v_messages, v_without_slot, v_keyless, p_owns_transaction,
                'cancelled'
            );
            set p_removed = p_removed + json_length(v_messages);
        elseif not p_of_dead and v_after = v_before then
            -- All rows of this step have the same due_at and are locked, so the next step would
            -- find them again.
            leave steps;
        end if;
    end loop;
end//
delimiter ;
