drop procedure if exists rowq.complete_and_dequeue;

delimiter //
create procedure rowq.complete_and_dequeue(
    p_queue_name longtext,
    p_claim_id bigint,
    p_message_ids longtext,
    p_results longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int
)
sql security definer
modifies sql data
comment 'Complete messages of a claim and lease the next ones, in one call and one commit.'
begin
-- routine   complete_and_dequeue
-- version   1
-- purpose   Complete messages of a claim and lease the next ones, in one call and one commit.
-- promise   P02 P03 P04 P05 P06 P07 P08 P13 P18 P21 P22 P23 P24 P26 P28 P29 P32 P37 P49
-- locks     as complete, then as dequeue_fast
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ713
-- differs   nothing
    declare v_owns_transaction, v_is_keyed, v_some_keyed boolean;
    declare v_tries_left int default 5;
    declare v_queue_id, v_open_lanes, v_attempt, v_some_attempt int;
    declare v_lane smallint;
    declare v_floor, v_head, v_seq, v_message_id, v_first_id, v_last_id, v_claim_id bigint;
    declare v_leased_at, v_lease_until datetime(6);
    declare v_ids, v_messages, v_completed, v_stale, v_none longtext;
    declare v_is_done boolean default false;
    declare v_is_shown boolean default true;
    /*!80000 declare v_count int; */
    set p_batch_size = coalesce(p_batch_size, 1);

    -- Fast path: own transaction, whole claim, no keys, successors, archive, results or history. If
    -- dequeue_fast could take its fast path too, the statements of both follow each other. Errors
    -- and all other cases change nothing here and go to the loop below.
    fast_path: begin
        -- cursor: generated from dequeue_fast.sql by make generate
        declare v_is_end boolean default false;
        declare each_ready cursor for
            select r.seq, r.message_id, r.attempt + 1, r.is_keyed
            from rowq.ready r force index (primary)
            where r.queue_id = v_queue_id
              and r.lane = v_lane
              and r.seq >= v_head
              and r.seq < 9223372036854775806
            order by r.queue_id, r.lane, r.seq, r.message_id
            limit p_batch_size
            for update skip locked;
        declare continue handler for not found set v_is_end = true;
        -- end of cursor
        -- handlers: generated from complete.sql by make generate
        -- Do not wait for the same lock twice (1205), and stop if the call was killed (1317) or
        -- timed out (1969, 3024). But message rows are never waited for here.
        declare exit handler for 1205, 1317, 1969, 3024
        begin
            declare v_errno int;
            get diagnostics condition 1 v_errno = mysql_errno;
            if v_errno = 1205 and v_is_done then
                rollback and no chain no release;
                set v_is_done = false;
            else
                call rowq.internal_roll_back(v_owns_transaction, null, v_tries_left);
                resignal;
            end if;
        end;
        declare exit handler for sqlexception
        begin
            if v_owns_transaction then
                rollback and no chain no release;
            end if;
            set v_is_done = false;
        end;
        -- end of handlers

        if p_results is not null then
            leave fast_path;
        end if;
        -- check: generated from dequeue_fast.sql by make generate
        if p_batch_size not between 1 and 1000
           or p_lease_seconds not between 1 and 86400
           or char_length(p_worker_name) > 200
           or locate(x'ED', cast(p_worker_name as binary)) > 0 then
            leave fast_path;
        end if;
        call rowq.internal_begin_work(v_owns_transaction);
        if not v_owns_transaction then
            leave fast_path;
        end if;
        -- end of check

        -- Count the open lanes if dequeue_fast could take its fast path. One below 0 means that
        -- closed lanes may have messages.
        select max(q.queue_id), max(c.first_id), max(c.last_id), max(c.messages),
               count(if(q.paused_at is null and q.max_leased + q.rate_limit = 0, l.lane, null)),
               max(l.lane), max(l.floor), max(utc_timestamp(6)),
               max(utc_timestamp(6) + interval coalesce(p_lease_seconds, q.lease_seconds) second)
        into v_queue_id, v_first_id, v_last_id, v_messages, v_open_lanes, v_lane, v_floor,
             v_leased_at, v_lease_until
        from rowq.queue q
        straight_join rowq.claim c force index (primary)
            on c.queue_id = q.queue_id
           and c.claim_id = p_claim_id
        left join rowq.lane l force index (primary)
            on l.queue_id = q.queue_id
           and l.is_open
        where q.queue_name = cast(p_queue_name as binary)
          and q.archive_days = 0
          and q.result_seconds = 0
          and q.history_days = 0
          and c.claim_id > 0
          and not c.is_keyed;
        if v_queue_id is null then
            commit and no chain no release;
            leave fast_path;
        end if;
        if p_message_ids is not null then
            -- The ids of the whole claim, in its order, are as good as none.
            if v_messages is null and v_first_id < v_last_id then
                call rowq.internal_expand_range(v_first_id, v_last_id, 0, 0, v_ids);
                set v_ids = json_extract(v_ids, '$[*][0]');
            else
                set v_ids = coalesce(
                    json_extract(v_messages, '$[*][0]'), concat('[', v_first_id, ']')
                );
            end if;
            if replace(p_message_ids, ' ', '') <> replace(v_ids, ' ', '') then
                commit and no chain no release;
                leave fast_path;
            end if;
        end if;

        -- completion: generated from complete.sql by make generate
        if v_queue_id is not null then
            -- The claim was read without a lock. The session that deletes it unchanged owns its
            -- messages.
            delete from rowq.claim
            where queue_id = v_queue_id
              and claim_id = p_claim_id
              and first_id <=> v_first_id
              and last_id <=> v_last_id
              and messages <=> v_messages;
            set v_is_done = row_count() > 0;
        end if;
        /*!80000
        -- MySQL has no timeout of 0 for the locks of one statement.
        if v_is_done then
            select count(*) into v_count
            from (
                select m.message_id
                from json_table(
                    coalesce(
                        v_messages, concat('[0', repeat(',0', v_last_id - v_first_id), ']')
                    ),
                    '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
                ) j
                straight_join rowq.message m force index (primary)
                    on m.message_id = if(
                        v_messages is null, v_first_id + j.place - 1, j.message_id
                    )
                limit 1000000
                for update of m skip locked
            ) h;
            if v_count < coalesce(json_length(v_messages), v_last_id - v_first_id + 1) then
                rollback and no chain no release;
                set v_is_done = false;
                leave fast_path;
            end if;
        end if;
        */
        if v_is_done and v_messages is null then
            -- Find each message by its key. A delete by range waits for a lock on the row after its
            -- end, and scans the whole table if the server believes it empty, as after a restart.
            -- An array of zeros counts to the end of the range. The loop below takes rows that
            -- another transaction has locked.
            if v_first_id = v_last_id then
                /*M!100600 set statement innodb_lock_wait_timeout = 0 for */
                delete from rowq.message
                where message_id = v_first_id
                  and has_successors is null;
            else
                /*M!100600 set statement innodb_lock_wait_timeout = 0 for */
                delete m
                from json_table(
                    concat('[0', repeat(',0', v_last_id - v_first_id), ']'),
                    '$[*]' columns (place for ordinality)
                ) j
                straight_join rowq.message m force index (primary)
                    on m.message_id = v_first_id + j.place - 1
                where m.has_successors is null;
            end if;
        elseif v_is_done then
            /*M!100600 set statement innodb_lock_wait_timeout = 0 for */
            delete m
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            where m.has_successors is null;
        end if;
        -- end of completion
        if not v_is_done
           or row_count() < coalesce(json_length(v_messages), v_last_id - v_first_id + 1) then
            -- The claim has changed, or messages have successors, which may open another lane.
            rollback and no chain no release;
            set v_is_done = false;
            leave fast_path;
        end if;

        -- Unlike dequeue_fast, do not read without locks first: this call has written already. If
        -- more than 10 ms have passed, the delete may have waited for the old claim, and the time,
        -- the settings and the lane read before are too old: internal_lease reads them again.
        set v_head = if(
                v_open_lanes = 1 and utc_timestamp(6) < v_leased_at + interval 10000 microsecond,
                v_floor, null
            ),
            v_first_id = null, v_last_id = null, v_messages = null;
        -- lease: generated from dequeue_fast.sql by make generate
        if v_head is not null and p_batch_size = 1 then
            select r.seq, r.message_id, r.message_id, r.attempt + 1, r.is_keyed
            into v_seq, v_first_id, v_last_id, v_attempt, v_is_keyed
            from rowq.ready r force index (primary)
            where r.queue_id = v_queue_id
              and r.lane = v_lane
              and r.seq >= v_head
              and r.seq < 9223372036854775806
            order by r.queue_id, r.lane, r.seq, r.message_id
            limit 1
            for update skip locked;
            delete from rowq.ready
            where queue_id = v_queue_id
              and lane = v_lane
              and seq = v_seq
              and message_id = v_first_id;
        elseif v_head is not null then
            open each_ready;
            set v_is_end = false;
            fetch each_ready into v_seq, v_message_id, v_some_attempt, v_some_keyed;
            set v_attempt = v_some_attempt, v_is_keyed = false;
            while not v_is_end do
                delete from rowq.ready
                where queue_id = v_queue_id
                  and lane = v_lane
                  and seq = v_seq
                  and message_id = v_message_id;
                if v_messages is null and v_message_id = v_last_id + 1
                   and v_some_attempt = v_attempt then
                    set v_last_id = v_message_id;
                elseif v_first_id is null then
                    set v_first_id = v_message_id, v_last_id = v_message_id;
                else
                    -- The ids are not consecutive, or the attempts differ: continue with a list.
                    if v_messages is null then
                        call rowq.internal_expand_range(
                            v_first_id, v_last_id, v_lane, v_attempt, v_messages
                        );
                        set v_messages = left(v_messages, char_length(v_messages) - 1);
                    end if;
                    set v_messages = concat(
                        v_messages, ',[', v_message_id, ',', v_lane, ',', v_some_attempt, ']'
                    );
                end if;
                if v_some_keyed then
                    set v_is_keyed = true;
                end if;
                fetch each_ready into v_seq, v_message_id, v_some_attempt, v_some_keyed;
            end while;
            close each_ready;
            set v_messages = concat(v_messages, ']');
        end if;

        if v_first_id is not null then
            set v_claim_id = uuid_short() & 9007199254740991;
            insert into rowq.claim (
                queue_id, claim_id, leased_at, lease_until, worker_name, is_keyed, lane, attempt,
                first_id, last_id, messages
            )
            values (
                v_queue_id, v_claim_id, v_leased_at, v_lease_until, p_worker_name, v_is_keyed,
                v_lane, v_attempt, v_first_id, v_last_id, v_messages
            );
        -- end of lease
            -- Move the floor as often as dequeue_fast, but not above the row leased last, nor above
            -- a row that another session has locked: its rollback would restore it.
            if rand() < 0.008 * least(p_batch_size, 10) then
                call rowq.internal_first_key(v_queue_id, v_lane, v_floor, v_head);
                set v_head = least(
                    v_seq, coalesce(v_head, v_seq),
                    timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 500000
                );
                if v_head > v_floor then
                    call rowq.internal_move_floor(v_queue_id, v_lane, v_floor, v_head);
                end if;
            end if;
        else
            call rowq.internal_lease(
                p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, false,
                v_owns_transaction, v_claim_id, v_lease_until, v_messages, v_none
            );
        end if;
        commit and no chain no release;
    end;

    attempt: while not v_is_done do
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

            set v_first_id = null, v_completed = null, v_stale = null;
            begin
                -- A claim that is gone does not prevent the dequeue.
                declare exit handler for sqlstate '45721' set v_stale = '[[null]]';
                call rowq.internal_complete_claimed(
                    p_queue_name, p_claim_id, p_message_ids, p_results, v_owns_transaction,
                    v_completed
                );
            end;
            if json_length(p_message_ids) > coalesce(json_length(v_completed), 0) then
                select json_arrayagg(json_array(a.message_id)) into v_stale
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
                left join (
                    select distinct j.message_id
                    from json_table(v_completed, '$[*]' columns (message_id bigint path '$[0]')) j
                ) h on h.message_id = a.message_id
                where h.message_id is null;
            end if;
            call rowq.internal_lease(
                p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, false,
                v_owns_transaction, v_claim_id, v_lease_until, v_messages, v_none
            );

            call rowq.internal_commit_work(v_owns_transaction);
            set v_is_done = true;
        end;
    end while;

    if v_messages is not null and not v_owns_transaction then
        select count(*) = json_length(v_messages) into v_is_shown
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
    end if;
    if v_stale is not null then
        set v_messages = json_merge_preserve(v_stale, coalesce(v_messages, '[]'));
    end if;

    if v_messages is null then
        select 'leased' as outcome, v_claim_id as claim_id, m.message_id, v_attempt as attempt,
               m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
               v_lease_until as lease_until, m.last_error
        from rowq.message m force index (primary)
        where m.message_id between v_first_id and v_last_id
        order by m.message_id;
    elseif v_is_shown then
        -- A stale message has no attempt.
        select if(j.attempt is null, 'stale', 'leased') as outcome,
               if(j.attempt is null, p_claim_id, v_claim_id) as claim_id, j.message_id, j.attempt,
               m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
               if(j.attempt is null, null, v_lease_until) as lease_until, m.last_error
        from json_table(
            v_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        left join rowq.message m force index (primary)
            on m.message_id = j.message_id
           and j.attempt is not null
        where j.attempt is null
           or m.message_id is not null
        order by j.place;
    else
        -- A locking read, as in dequeue_fast: the caller's snapshot does not show newer messages.
        select if(j.attempt is null, 'stale', 'leased') as outcome,
               if(j.attempt is null, p_claim_id, v_claim_id) as claim_id, j.message_id, j.attempt,
               m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
               if(j.attempt is null, null, v_lease_until) as lease_until, m.last_error
        from json_table(
            v_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        left join rowq.message m force index (primary)
            on m.message_id = j.message_id
           and j.attempt is not null
        where j.attempt is null
           or m.message_id is not null
        order by j.place
        /*!80000 for share of m */ /*M!100600 lock in share mode */;
    end if;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
