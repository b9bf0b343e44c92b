-- Dequeue: lease messages, and wait for them.
--
-- A dequeue locks the first rows of the best lane, skips locked ones, deletes them from ready and
-- inserts one claim: one lease, one heartbeat and one complete per batch. A rollback restores
-- everything. If nothing is ready, it promotes due messages and runs some deferred work, so a queue
-- without maintain still moves. dequeue_wait repeats that in short transactions until a message
-- comes or the time is up.
--
-- The fast path is in routines/dequeue_fast.sql, and copied to routines/complete_and_dequeue.sql;
-- this is the general path. One waiter per queue polls for all, and holds a row of lane while it
-- sleeps.
--
--   dequeue_fast, dequeue_wait -> dequeue -> lease -> pop_ready, push_claim, trim_claim
--   complete_and_dequeue -> lease
--   pop_ready -> lock_ready
--   purge_ready -> lock_ready
--   trim_claim -> messages_json, return_ready
--   dequeue_wait -> wait
--
-- Writes claim, ready. Only reads lane, queue.

drop procedure if exists rowq.internal_dequeue;

delimiter //
create procedure rowq.internal_dequeue(
    p_queue_name longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int,
    p_is_json boolean,
    out p_claim_id bigint,
    out p_lease_until datetime(6),
    out p_messages longtext,
    out p_json longtext
)
sql security definer
modifies sql data
begin
-- purpose   Lease up to p_batch_size ready messages to one new claim, as rows or as one JSON array.
-- locks     as internal_lease
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ713
-- differs   shared by two routines, because a procedure cannot read another's result set
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;

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

            call rowq.internal_lease(
                p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, p_is_json,
                v_owns_transaction, p_claim_id, p_lease_until, p_messages, p_json
            );
            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_lease;

delimiter //
create procedure rowq.internal_lease(
    p_queue_name longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int,
    p_is_json boolean,
    p_owns_transaction boolean,
    out p_claim_id bigint,
    out p_lease_until datetime(6),
    out p_messages longtext,
    out p_json longtext
)
sql security definer
modifies sql data
begin
-- purpose   Lease messages as internal_dequeue, in the transaction that is open.
-- locks     the limit lock, if the queue has limits; ready rows, skipping locked ones; the new
--           claim row
-- errors    RQ701 RQ711 RQ713
    declare v_queue_id, v_lease_seconds, v_promoted, v_solved int;
    declare v_capacity int default p_batch_size;
    declare v_max_leased, v_rate_limit int;
    declare v_rate_seconds double;
    declare v_last_claim_id bigint;
    declare v_is_paused boolean;
    declare v_leased_at datetime(6);

    call rowq.internal_check_range('batch_size', p_batch_size, 1, 1000);
    call rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    if char_length(p_worker_name) > 200 then
        call rowq.internal_refuse('worker_name must be at most 200 characters');
    elseif locate(x'ED', cast(p_worker_name as binary)) > 0 then
        call rowq.internal_check_text('worker_name', p_worker_name);
    end if;

    set p_claim_id = null, p_messages = null, p_json = null;
    select q.queue_id, q.lease_seconds, q.paused_at is not null, q.max_leased, q.rate_limit,
           q.rate_seconds
    into v_queue_id, v_lease_seconds, v_is_paused, v_max_leased, v_rate_limit,
         v_rate_seconds
    from rowq.queue q
    where q.queue_name = cast(p_queue_name as binary);
    if v_queue_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    end if;

    if v_is_paused then
        set v_capacity = 0;
    elseif v_max_leased + v_rate_limit > 0 then
        call rowq.internal_admit(
            v_queue_id, p_batch_size, v_max_leased, v_rate_limit, v_rate_seconds,
            p_owns_transaction, v_capacity, v_last_claim_id
        );
    end if;
    if v_capacity > 0 then
        call rowq.internal_pop_ready(
            v_queue_id, v_capacity, p_owns_transaction, p_messages
        );
        if p_messages is null then
            -- Nothing is ready. Promote due messages and run deferred work now instead of
            -- waiting for maintain.
            call rowq.internal_promote(
                v_queue_id, v_capacity, p_owns_transaction, v_promoted
            );
            call rowq.internal_run_deferred(
                v_queue_id, 10, p_owns_transaction, false, v_solved
            );
            if v_promoted + v_solved > 0 then
                call rowq.internal_pop_ready(
                    v_queue_id, v_capacity, p_owns_transaction, p_messages
                );
            end if;
        end if;
    end if;

    if p_messages is not null then
        set v_leased_at = utc_timestamp(6);
        set p_lease_until = v_leased_at
            + interval coalesce(p_lease_seconds, v_lease_seconds) second;
        call rowq.internal_push_claim(
            v_queue_id, v_leased_at, p_lease_until, p_worker_name, p_messages, p_claim_id
        );
        if p_is_json then
            call rowq.internal_trim_claim(
                v_queue_id, p_claim_id, p_lease_until, p_messages, p_json
            );
        end if;
        if v_last_claim_id is not null and p_messages is not null then
            call rowq.internal_record_start(
                v_queue_id, p_claim_id, v_last_claim_id, v_leased_at,
                json_length(p_messages), v_rate_limit
            );
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_pop_ready;

delimiter //
create procedure rowq.internal_pop_ready(
    p_queue_id int,
    p_limit int,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- purpose   Lease up to p_limit messages, best lane first; return null if there are none.
-- locks     ready rows and rows of lane, skipping locked ones
    declare v_left int default p_limit;
    declare v_lane smallint default -32768;
    declare v_is_hidden boolean default false;
    declare v_next, v_probe smallint;
    declare v_floor, v_first, v_seen, v_to bigint;
    declare v_some longtext;
    set p_messages = null;

    lanes: while v_left > 0 do
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
            -- An open-lane request: read closed lanes too, which hold messages that an open
            -- transaction keeps other sessions from opening.
            set v_is_hidden = true, v_lane = -1;
            iterate lanes;
        end if;
        set v_lane = v_next;

        -- Read without locks first, so that an empty lane costs no write and its sentinel rows are
        -- not locked. Only "select ... into" takes no locks: exists() or a subquery in "set" would
        -- wait for open producers.
        set v_probe = null;
        select r.attempt into v_probe
        from rowq.ready r force index (primary)
        where r.queue_id = p_queue_id
          and r.lane = v_lane
          and r.seq >= v_floor
          and r.seq < 9223372036854775806
        order by r.queue_id, r.lane, r.seq, r.message_id
        limit 1;
        if v_probe is null then
            iterate lanes;
        end if;

        call rowq.internal_lock_ready(
            p_queue_id, v_lane, v_floor, v_left, p_owns_transaction, v_some
        );
        if v_some is null then
            iterate lanes;
        end if;
        set v_left = v_left - json_length(v_some), v_first = json_extract(v_some, '$[0][3]');

        delete r
        from json_table(
            v_some, '$[*]' columns (message_id bigint path '$[0]', seq bigint path '$[3]')
        ) j
        straight_join rowq.ready r force index (primary)
            on r.queue_id = p_queue_id
           and r.lane = v_lane
           and r.seq = j.seq
           and r.message_id = j.message_id;
        set p_messages = if(
            p_messages is null, v_some, json_merge_preserve(p_messages, v_some)
        );

        -- Moving the floor costs a write, so do it in 1 of 12 dequeues, and never in the caller's
        -- transaction, which may hold the row for long or read an old snapshot.
        if p_owns_transaction and rand() < 0.08 then
            -- Stop below a row that another session has locked: its rollback would restore it.
            call rowq.internal_first_key(p_queue_id, v_lane, v_floor, v_seen);
            set v_to = least(
                v_first, coalesce(v_seen, v_first),
                timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 500000
            );
            if v_to > v_floor then
                call rowq.internal_move_floor(p_queue_id, v_lane, v_floor, v_to);
            end if;
        end if;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_lock_ready;

delimiter //
create procedure rowq.internal_lock_ready(
    p_queue_id int,
    p_lane smallint,
    p_floor bigint,
    p_limit int,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- purpose   Lock up to p_limit messages of one lane, starting at its floor.
-- locks     ready rows, skipping locked ones
-- differs   here locking a range may lock its gaps
    declare v_from bigint default p_floor;
    declare v_after bigint default 0;
    declare v_seen, v_some longtext;
    declare v_left int default p_limit;
    declare v_scan_size int default p_limit + 50;
    set p_messages = null;

    if p_owns_transaction then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt + 1, h.seq, h.is_keyed))
        into p_messages
        from (
            select r.lane, r.seq, r.message_id, r.attempt, r.is_keyed
            from rowq.ready r force index (primary)
            where r.queue_id = p_queue_id
              and r.lane = p_lane
              and r.seq >= p_floor
              and r.seq < 9223372036854775806
            order by r.queue_id, r.lane, r.seq, r.message_id
            limit p_limit
            for update skip locked
        ) h;
    else
        -- In the caller's transaction, which may be REPEATABLE READ, locking a range locks its gaps
        -- and blocks producers. So find rows without locks, then lock them by their full keys.
        scans: while v_left > 0 do
            select json_arrayagg(json_array(h.message_id, h.attempt, h.seq)) into v_seen
            from (
                select r.seq, r.message_id, r.attempt
                from rowq.ready r force index (primary)
                where r.queue_id = p_queue_id
                  and r.lane = p_lane
                  and r.seq >= v_from
                  and r.seq < 9223372036854775806
                  and (r.seq > v_from or r.message_id > v_after)
                order by r.queue_id, r.lane, r.seq, r.message_id
                limit v_scan_size
            ) h;
            if v_seen is null then
                leave scans;
            end if;

            select json_arrayagg(
                       json_array(h.message_id, h.lane, h.attempt + 1, h.seq, h.is_keyed)
                   )
            into v_some
            from (
                select r.lane, r.seq, r.message_id, r.attempt, r.is_keyed
                from json_table(
                    v_seen, '$[*]' columns (message_id bigint path '$[0]', seq bigint path '$[2]')
                ) j
                straight_join rowq.ready r force index (primary)
                    on r.queue_id = p_queue_id
                   and r.lane = p_lane
                   and r.seq = j.seq
                   and r.message_id = j.message_id
                limit v_left
                for update /*!80000 of r */ skip locked
            ) h;
            if v_some is not null then
                set v_left = v_left - json_length(v_some);
                set p_messages = if(
                    p_messages is null, v_some, json_merge_preserve(p_messages, v_some)
                );
            end if;
            if json_length(v_seen) < v_scan_size then
                leave scans;
            end if;
            set v_from = json_extract(v_seen, concat('$[', v_scan_size - 1, '][2]')),
                v_after = json_extract(v_seen, concat('$[', v_scan_size - 1, '][0]')),
                v_scan_size = least(v_scan_size * 2, 10000);
        end while;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_push_claim;

delimiter //
create procedure rowq.internal_push_claim(
    p_queue_id int,
    p_leased_at datetime(6),
    p_lease_until datetime(6),
    p_worker_name varchar(200),
    p_messages longtext,
    out p_claim_id bigint
)
sql security definer
modifies sql data
begin
-- purpose   Insert the claim of a batch: a range if the ids are consecutive, else a list.
    declare v_is_keyed, v_is_range boolean;
    declare v_lane, v_attempt smallint;
    declare v_first_id, v_last_id bigint;

    select max(j.is_keyed), min(j.lane), min(j.attempt), min(j.message_id), max(j.message_id),
           min(j.message_id - j.place) = max(j.message_id - j.place)
           and min(j.lane) = max(j.lane)
           and min(j.attempt) = max(j.attempt)
    into v_is_keyed, v_lane, v_attempt, v_first_id, v_last_id, v_is_range
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            is_keyed tinyint path '$[4]'
        )
    ) j;

    set p_claim_id = uuid_short() & 9007199254740991;
    if v_is_range then
        insert into rowq.claim (
            queue_id, claim_id, leased_at, lease_until, worker_name, is_keyed, lane, attempt,
            first_id, last_id
        )
        values (
            p_queue_id, p_claim_id, p_leased_at, p_lease_until, p_worker_name, v_is_keyed, v_lane,
            v_attempt, v_first_id, v_last_id
        );
    else
        insert into rowq.claim (
            queue_id, claim_id, leased_at, lease_until, worker_name, is_keyed, messages
        )
        values (
            p_queue_id, p_claim_id, p_leased_at, p_lease_until, p_worker_name, v_is_keyed,
            p_messages
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_trim_claim;

delimiter //
create procedure rowq.internal_trim_claim(
    p_queue_id int,
    p_claim_id bigint,
    p_lease_until datetime(6),
    inout p_messages longtext,
    out p_json longtext
)
sql security definer
modifies sql data
begin
-- purpose   Return a new claim's messages as a JSON array; put back those beyond max_allowed_packet.
-- locks     the claim row and ready rows, held by the caller; as internal_push_dead
-- commits   never; call it in the transaction that leased the messages
-- errors    RQ711
-- differs   elsewhere no server setting limits the size of an answer
    declare v_all, v_some, v_dead longtext;
    declare v_count int default json_length(p_messages);
    declare v_first int default 1;
    declare v_last int default 0;
    declare v_size int default 100;
    set p_json = null, v_all = p_messages;

    -- Read the messages in pieces, to avoid reading those that do not fit. Halve a piece that is
    -- too long, down to one message.
    pieces: while v_last < v_count do
        call rowq.internal_messages_json(
            p_claim_id, p_lease_until, v_all, v_last + 1, least(v_size, v_count - v_last), v_some
        );
        -- The engine truncates between characters, up to 3 bytes below the limit: leave 10 bytes.
        if length(v_some) + coalesce(length(p_json), 0) + 10 < @@max_allowed_packet then
            set p_json = concat_ws(',', p_json, v_some),
                v_last = v_last + least(v_size, v_count - v_last);
            -- Size the next piece to fill half of the remaining space, judging by the average so
            -- far.
            set v_size = greatest(
                v_size,
                (v_last - v_first + 1) * (@@max_allowed_packet / length(p_json) - 1) div 2
            );
        elseif v_size > 1 then
            set v_size = greatest(least(v_size, v_count - v_last) div 2, 1);
        elseif p_json is not null then
            leave pieces;
        elseif @@max_allowed_packet < @@global.max_allowed_packet then
            call rowq.internal_refuse(
                'the next message exceeds max_allowed_packet of this session; reconnect'
            );
        else
            -- max_allowed_packet was larger when this message was enqueued. Make it dead, so that
            -- it does not block others.
            set v_last = v_last + 1, v_first = v_last + 1, v_size = 100;
            select json_arrayagg(json_array(j.message_id, j.lane, j.attempt - 1)) into v_dead
            from json_table(
                v_all,
                '$[*]' columns (
                    place for ordinality,
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    attempt smallint path '$[2]'
                )
            ) j
            where j.place = v_last;
            call rowq.internal_push_dead(
                p_queue_id, v_dead,
                concat(
                    'not delivered: as JSON it is longer than max_allowed_packet, ',
                    @@max_allowed_packet, '; raise that on the server, then reset the message'
                ),
                true
            );
        end if;
    end while;
    set p_json = concat('[', p_json, ']');

    if v_first > 1 or v_last < v_count then
        call rowq.internal_return_ready(p_queue_id, v_all, v_last);
        set p_messages = null;
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt, j.seq)) into p_messages
        from json_table(
            v_all,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]',
                seq bigint path '$[3]'
            )
        ) j
        where j.place between v_first and v_last;
        if p_messages is null then
            delete c
            from rowq.claim c force index (primary)
            where c.queue_id = p_queue_id
              and c.claim_id = p_claim_id;
        else
            update rowq.claim c force index (primary)
            set c.messages = p_messages
            where c.queue_id = p_queue_id
              and c.claim_id = p_claim_id;
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_messages_json;

delimiter //
create procedure rowq.internal_messages_json(
    p_claim_id bigint,
    p_lease_until datetime(6),
    p_messages longtext,
    p_first int,
    p_count int,
    out p_json longtext
)
sql security definer
modifies sql data
begin
-- purpose   Return p_count messages from p_first on as JSON; null if one of several may be too long.
-- differs   elsewhere no server setting limits the size of an answer
    declare v_length bigint;
    declare v_cut_at bigint unsigned default @@group_concat_max_len;
    declare exit handler for sqlexception
    begin
        set session group_concat_max_len = v_cut_at;
        resignal;
    end;
    set p_json = null;

    -- No function returns more than max_allowed_packet, and after one failed attempt MariaDB's
    -- json_object returns null even for short messages. So measure first. JSON needs up to 6 bytes
    -- per byte; 500 bytes cover the keys and the other columns.
    select 6 * max(
               coalesce(length(m.body), length(m.body_binary), 0) + coalesce(length(m.headers), 0)
               + coalesce(length(m.message_type), 0) + coalesce(length(m.last_error), 0)
           )
    into v_length
    from json_table(
        p_messages, '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
    ) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    where j.place between p_first and p_first + p_count - 1;

    if p_count = 1 and v_length + 500 > @@max_allowed_packet then
        -- Measure the JSON itself only if a single message may be too long. to_base64 adds line
        -- breaks, which count here although they are removed later.
        select coalesce(
                   length(json_quote(m.body)), length(m.body) * 6, length(m.body_binary) * 1.352, 0
               )
               + coalesce(length(json_extract(m.headers, '$')), 0)
               + 6 * coalesce(length(m.message_type), 0) + 6 * coalesce(length(m.last_error), 0)
        into v_length
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.place = p_first;
    end if;

    if v_length + 500 <= @@max_allowed_packet then
        -- group_concat truncates at this length, and at max_allowed_packet.
        set session group_concat_max_len = @@max_allowed_packet;
        select group_concat(
                   json_object(
                       'claim_id', p_claim_id + 0, 'message_id', m.message_id, 'attempt', j.attempt,
                       'message_type', m.message_type, 'headers', json_extract(m.headers, '$'),
                       'body', m.body,
                       'body_binary', replace(to_base64(m.body_binary), '\n', ''),
                       'enqueued_at', date_format(m.enqueued_at, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                       'lease_until', date_format(p_lease_until, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                       'last_error', m.last_error
                   )
                   separator ','
               )
        into p_json
        from json_table(
            p_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.place between p_first and p_first + p_count - 1;
        set session group_concat_max_len = v_cut_at;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_return_ready;

delimiter //
create procedure rowq.internal_return_ready(p_queue_id int, p_messages longtext, p_kept int)
sql security definer
modifies sql data
begin
-- purpose   Put back what internal_pop_ready leased, except the first p_kept messages.
-- locks     ready rows, held by the caller
-- commits   never; call it in the transaction that leased the messages
-- differs   elsewhere the rest of a batch goes to the front of its priority
    -- No floor has passed these rows: floors stop at rows whose delete is not committed.
    insert into rowq.ready (queue_id, lane, seq, message_id, attempt)
    select p_queue_id, j.lane, j.seq, j.message_id, j.attempt - 1
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            seq bigint path '$[3]'
        )
    ) j
    where j.place > p_kept;
end//
delimiter ;

drop procedure if exists rowq.internal_wait;

delimiter //
create procedure rowq.internal_wait(
    p_queue_id int,
    p_until datetime(6),
    inout p_pause double
)
sql security definer
modifies sql data
begin
-- purpose   Sleep until a waiter's next poll, at most until p_until.
-- locks     a row of lane while it sleeps, skipped if locked
-- commits   each statement; call it outside transactions
-- differs   elsewhere waiters are woken, or a session lock elects the poller
    declare v_next_poll datetime(6) default least(p_until, utc_timestamp(6) + interval 1 second);
    declare v_left double;
    declare v_slept, v_interrupted int;

    -- The poller, which holds the row of lane -20 while it sleeps, polls the queue 10 times a
    -- second. Other waiters try that row 4 times a second and poll the queue once a second.
    naps: while v_slept is null and utc_timestamp(6) < v_next_poll do
        set v_left = timestampdiff(microsecond, utc_timestamp(6), v_next_poll) / 1000000;
        -- The lock lasts as long as this statement, and ends with a killed session. Without "limit
        -- 1" the engine would read the row, release its lock and only then sleep.
        select sleep(least(p_pause, v_left)) into v_slept
        from (
            select l.lane
            from rowq.lane l force index (primary)
            where l.queue_id = p_queue_id
              and l.lane = -20 /* waiters */
            limit 1
            for update skip locked
        ) h;
        if v_slept is null then
            set v_interrupted = sleep(least(0.25, v_left));
        else
            set v_interrupted = v_slept, p_pause = least(p_pause * 2, 0.1);
        end if;
        if v_interrupted then
            signal sqlstate '70100'
                set mysql_errno = 1317, message_text = 'Query execution was interrupted';
        end if;
    end while;
end//
delimiter ;
