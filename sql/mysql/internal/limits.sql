-- Limits: max_leased and rate_limit.
--
-- A dequeue from a limited queue counts the leased messages and the deliveries of the last
-- rate_seconds, and leases no more than the limits allow. It counts first without a lock, so that
-- polling a queue at its limit neither waits nor writes, then under the limit lock (the queue's
-- row in limit_lock), so that two dequeues cannot use the same capacity. There are no counters
-- that could leak capacity: a finished, reaped or rolled-back claim no longer counts as leased.
--
--   dequeue -> admit -> available_capacity, lock_limit
--   maintain_delivery -> move_safe_floor -> has_late_claim
--   dequeue -> record_start
--   maintain_delivery -> purge_started
--
-- Writes limit_lock, started. Only reads claim, lane, queue.

drop procedure if exists rowq.internal_admit;

delimiter //
create procedure rowq.internal_admit(
    p_queue_id int,
    p_wanted int,
    p_max_leased int,
    inout p_rate_limit int,
    p_rate_seconds double,
    p_owns_transaction boolean,
    out p_capacity int,
    out p_last_claim_id bigint
)
sql security definer
modifies sql data
begin
-- purpose   Return how many messages a dequeue may lease, and hold the queue's limit lock.
-- locks     the limit lock: waits up to 100 ms, holds it until the transaction ends
-- errors    RQ713
-- differs   the isolation level of a single transaction cannot be read, only that of the session
    declare v_is_old boolean default
        not p_owns_transaction
        and /*!80000 @@session.transaction_isolation */ /*M!100600 @@session.tx_isolation */
            <> 'READ-COMMITTED';
    declare v_is_paused boolean;
    set p_capacity = 0, p_last_claim_id = null;

    -- An older snapshot does not show what other sessions have leased since, and READ UNCOMMITTED
    -- hides rows whose delete may be rolled back.
    if not v_is_old then
        -- Count without the lock first: polling a queue at its limit must not wait or write.
        call rowq.internal_available_capacity(
            p_queue_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds, p_capacity
        );
        if p_capacity > 0 then
            call rowq.internal_lock_limit(p_queue_id, p_last_claim_id);
        end if;
    end if;

    if p_last_claim_id is not null and not p_owns_transaction then
        -- REPEATABLE READ may be set for this transaction only. A snapshot that shows the previous
        -- holder of the limit lock also shows all earlier ones.
        select not g.last_claim_id <=> p_last_claim_id into v_is_old
        from rowq.limit_lock g
        where g.queue_id = p_queue_id;
    end if;
    if v_is_old then
        signal sqlstate '45713'
            set message_text =
                'RQ713 wrong_transaction_state: '
                'a queue with max_leased or rate_limit requires READ COMMITTED';
    end if;

    if p_last_claim_id is null then
        set p_capacity = 0;
    else
        -- Read and count again in new statements: their snapshots are newer than the lock, so they
        -- include the previous holder's claim and changed settings.
        select q.paused_at is not null, q.max_leased, q.rate_limit, q.rate_seconds
        into v_is_paused, p_max_leased, p_rate_limit, p_rate_seconds
        from rowq.queue q
        where q.queue_id = p_queue_id;
        if v_is_paused then
            set p_capacity = 0;
        else
            call rowq.internal_available_capacity(
                p_queue_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds, p_capacity
            );
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_available_capacity;

delimiter //
create procedure rowq.internal_available_capacity(
    p_queue_id int,
    p_wanted int,
    p_max_leased int,
    p_rate_limit int,
    p_rate_seconds double,
    out p_capacity int
)
sql security definer
reads sql data
begin
-- purpose   Return how many of p_wanted messages the queue's limits allow now.
    declare v_since datetime(6) default
        utc_timestamp(6) - interval round(p_rate_seconds * 1000000) microsecond;
    set p_capacity = p_wanted;

    if p_max_leased > 0 then
        -- Start at the safe floor, so that claims committed late are counted.
        select least(
                   p_capacity,
                   p_max_leased - coalesce(
                       sum(coalesce(json_length(c.messages), c.last_id - c.first_id + 1)), 0
                   )
               )
        into p_capacity
        from rowq.lane l force index (primary)
        straight_join rowq.claim c force index (primary)
            on c.queue_id = l.queue_id
           and c.claim_id >= l.floor
        where l.queue_id = p_queue_id
          and l.lane = -9 /* counted claim */
          and c.claim_id > 0;
    end if;
    if p_rate_limit > 0 and p_capacity > 0 then
        select least(p_capacity, p_rate_limit - coalesce(sum(s.messages), 0)) into p_capacity
        from rowq.started s force index (primary)
        where s.queue_id = p_queue_id
          and s.started_at > v_since;
    end if;
    set p_capacity = greatest(p_capacity, 0);
end//
delimiter ;

drop procedure if exists rowq.internal_lock_limit;

delimiter //
create procedure rowq.internal_lock_limit(p_queue_id int, out p_last_claim_id bigint)
sql security definer
modifies sql data
begin
-- purpose   Lock the limit lock and return its last claim; null if it is not free within 100 ms.
-- locks     the limit lock: waits up to 100 ms
    declare v_naps_left int default 10;
    set p_last_claim_id = null;

    tries: loop
        select g.last_claim_id into p_last_claim_id
        from rowq.limit_lock g
        where g.queue_id = p_queue_id
        for update skip locked;
        if p_last_claim_id is not null or v_naps_left = 0 then
            leave tries;
        end if;
        -- Poll, because the shortest lock timeout is a second.
        set v_naps_left = v_naps_left - 1;
        if sleep(0.01) then
            signal sqlstate '70100'
                set mysql_errno = 1317, message_text = 'Query execution was interrupted';
        end if;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_move_safe_floor;

delimiter //
create procedure rowq.internal_move_safe_floor(p_queue_id int)
sql security definer
modifies sql data
begin
-- purpose   Move the safe floor up to the first claim that exists or may yet be committed.
-- locks     the limit lock, skipped if locked; as internal_has_late_claim
-- commits   its own transaction if the caller has none; never the caller's
    declare c_min_step int default 400;
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_floor, v_last, v_first bigint;
    declare v_has_late boolean;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);
            set v_last = null;

            -- Not in the caller's transaction, which would hold the limit lock to its end. While
            -- this session holds it, no limited dequeue can add a claim.
            if v_owns_transaction then
                select g.last_claim_id into v_last
                from rowq.limit_lock g
                where g.queue_id = p_queue_id
                for update skip locked;
            end if;
            if v_last is not null then
                select l.floor into v_floor
                from rowq.lane l force index (primary)
                where l.queue_id = p_queue_id
                  and l.lane = -9 /* counted claim */;
                call rowq.internal_first_key(p_queue_id, -1 /* claim */, v_floor, v_first);
                -- Never pass the last counted claim: internal_record_start compares new ones with
                -- it.
                set v_first = least(coalesce(v_first, v_last + 1), v_last + 1);
                if v_first > v_floor + c_min_step then
                    call rowq.internal_has_late_claim(
                        p_queue_id, v_floor, v_first, v_has_late
                    );
                    if not v_has_late then
                        call rowq.internal_move_floor(
                            p_queue_id, -9 /* counted claim */, v_floor, v_first
                        );
                    end if;
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_has_late_claim;

delimiter //
create procedure rowq.internal_has_late_claim(
    p_queue_id int,
    p_from bigint,
    p_before bigint,
    out p_has_late boolean
)
sql security definer
modifies sql data
begin
-- purpose   Return whether claims from p_from to below p_before exist or may yet be committed.
-- locks     claim rows of that range, no wait; a timeout may roll back the transaction, so call it
--           before any write
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare v_claim_id bigint;
    declare v_is_range boolean;
    -- MariaDB refuses nowait in procedures (1314) but allows a timeout of 0; MySQL does not.
    declare exit handler for 1205, 3572
    begin
        set session innodb_lock_wait_timeout = v_patience;
        set p_has_late = true;
    end;
    declare exit handler for sqlexception
    begin
        set session innodb_lock_wait_timeout = v_patience;
        resignal;
    end;

    /*M!100600 set session innodb_lock_wait_timeout = 0; */
    select c.claim_id, c.messages is null into v_claim_id, v_is_range
    from rowq.claim c force index (primary)
    where c.queue_id = p_queue_id
      and c.claim_id > 0
      and c.claim_id >= p_from
      and c.claim_id < p_before
    limit 1
    for update /*!80000 nowait */;
    set session innodb_lock_wait_timeout = v_patience;
    set p_has_late = v_claim_id is not null;
end//
delimiter ;

drop procedure if exists rowq.internal_record_start;

delimiter //
create procedure rowq.internal_record_start(
    p_queue_id int,
    p_claim_id bigint,
    p_last_claim_id bigint,
    p_started_at datetime(6),
    p_messages int,
    p_rate_limit int
)
sql security definer
modifies sql data
begin
-- purpose   Record a limited queue's last claim and, with a rate_limit, the deliveries it started.
-- locks     the limit lock, held by the caller
    update rowq.limit_lock g
    set g.last_claim_id = p_claim_id
    where g.queue_id = p_queue_id;

    if p_claim_id < p_last_claim_id then
        -- Claim ids went backwards, as after a move to another server: count from 0 until maintain
        -- finds the floor.
        call rowq.internal_move_floor(p_queue_id, -9 /* counted claim */, 0, 0);
    end if;

    if p_rate_limit > 0 then
        insert into rowq.started (queue_id, started_at, claim_id, messages)
        values (p_queue_id, p_started_at, p_claim_id, p_messages);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_purge_started;

delimiter //
create procedure rowq.internal_purge_started(p_queue_id int, p_seconds double, p_limit int)
sql security definer
modifies sql data
begin
-- purpose   Delete up to p_limit rows of started, at most 10000, that are older than p_seconds.
-- locks     the deleted rows
    -- A longer list might be cut off at group_concat_max_len.
    declare v_limit int default least(p_limit, 10000);
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_before datetime(6) default
        utc_timestamp(6) - interval round(p_seconds * 1000000) microsecond;
    declare v_since datetime(6);
    declare v_old longtext;

    select v_epoch + interval l.floor microsecond into v_since
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = -5 /* started */;
    -- Find rows without locks, then delete them by their full keys, so that no gap is locked.
    select json_arrayagg(
               json_array(h.claim_id, timestampdiff(microsecond, '1970-01-01', h.started_at))
           )
    into v_old
    from (
        select s.started_at, s.claim_id, s.messages
        from rowq.started s force index (primary)
        where s.queue_id = p_queue_id
          and s.started_at >= v_since
          and s.started_at < v_before
        order by s.queue_id, s.started_at, s.claim_id
        limit v_limit
    ) h;

    if v_old is not null then
        delete s
        from json_table(
            v_old, '$[*]' columns (claim_id bigint path '$[0]', started_at bigint path '$[1]')
        ) j
        straight_join rowq.started s force index (primary)
            on s.queue_id = p_queue_id
           and s.started_at = v_epoch + interval j.started_at microsecond
           and s.claim_id = j.claim_id;
    end if;
end//
delimiter ;
