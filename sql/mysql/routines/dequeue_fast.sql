drop procedure if exists rowq.dequeue_fast;

delimiter //
create procedure rowq.dequeue_fast(
    p_queue_name longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int
)
sql security definer
modifies sql data
comment 'Lease up to batch_size ready messages under one new claim, and skip locked rows.'
begin
-- routine   dequeue_fast
-- version   1
-- purpose   Lease up to batch_size ready messages under one new claim, and skip locked rows.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     ready rows, skipping locked ones; the new claim row; sometimes a row of lane, skipped
--           if locked; the limit lock, if the queue has limits: waits up to 100 ms, holds it until
--           the transaction ends
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ713
-- differs   the claim row holds the batch as a range of ids or as a JSON array
    declare v_owns_transaction, v_is_keyed, v_some_keyed boolean;
    declare v_tries_left int default 1;
    declare v_queue_id, v_open_lanes, v_attempt, v_some_attempt int;
    declare v_lane smallint;
    declare v_floor, v_head, v_seq, v_message_id, v_first_id, v_last_id, v_claim_id bigint;
    declare v_leased_at, v_lease_until datetime(6);
    declare v_messages, v_none longtext;
    declare v_is_shown boolean default true;
    set p_batch_size = coalesce(p_batch_size, 1);

    -- Fast path: own transaction, valid arguments, one open lane, no limits. The duration of a call
    -- depends on its number of statements, so it has few. Errors and all other cases change nothing
    -- here and go to internal_dequeue.
    fast_path: begin
        -- cursor: copied to complete_and_dequeue by make generate
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
        -- Do not wait for the same lock twice (1205), and stop if the call was killed (1317) or
        -- timed out (1969, 3024).
        declare exit handler for 1205, 1317, 1969, 3024
        begin
            call rowq.internal_roll_back(v_owns_transaction, null, v_tries_left);
            resignal;
        end;
        declare exit handler for sqlexception
        begin
            if v_owns_transaction then
                rollback and no chain no release;
            end if;
            set v_claim_id = null, v_messages = null, v_first_id = null;
        end;

        -- check: copied to complete_and_dequeue by make generate
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

        -- An open lane below 0 means that closed lanes may have messages.
        select count(*), max(l.queue_id), max(l.lane), max(l.floor), max(utc_timestamp(6)),
               max(utc_timestamp(6) + interval coalesce(p_lease_seconds, q.lease_seconds) second)
        into v_open_lanes, v_queue_id, v_lane, v_floor, v_leased_at, v_lease_until
        from rowq.queue q
        straight_join rowq.lane l force index (primary) on l.queue_id = q.queue_id
        where q.queue_name = cast(p_queue_name as binary)
          and q.paused_at is null
          and q.max_leased + q.rate_limit = 0
          and l.is_open;
        if v_open_lanes <> 1 then
            commit and no chain no release;
            leave fast_path;
        end if;

        -- Read without locks first, so that an empty lane costs no write and its sentinel rows are
        -- not locked.
        select r.seq, r.attempt into v_head, v_attempt
        from rowq.ready r force index (primary)
        where r.queue_id = v_queue_id
          and r.lane = v_lane
          and r.seq >= v_floor
          and r.seq < 9223372036854775806
        order by r.queue_id, r.lane, r.seq, r.message_id
        limit 1;

        -- lease: copied to complete_and_dequeue by make generate
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
            -- Moving the floor costs a write, so do it in 1 of 12 batches and 1 of 125 calls for
            -- one message. Nothing can reappear below the head: it was there when this call began,
            -- even if another session has locked it.
            if rand() < 0.008 * least(p_batch_size, 10) then
                set v_head = least(
                    v_head, timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 500000
                );
                if v_head > v_floor then
                    call rowq.internal_move_floor(v_queue_id, v_lane, v_floor, v_head);
                end if;
            end if;
        end if;
        commit and no chain no release;
    end;

    if v_claim_id is null then
        call rowq.internal_dequeue(
            p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, false,
            v_claim_id, v_lease_until, v_messages, v_none
        );
    end if;

    if v_messages is not null and not v_owns_transaction then
        select count(*) = json_length(v_messages) into v_is_shown
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
    end if;

    if v_messages is null then
        select v_claim_id as claim_id, m.message_id, v_attempt as attempt,
               m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
               v_lease_until as lease_until, m.last_error
        from rowq.message m force index (primary)
        where m.message_id between v_first_id and v_last_id
        order by m.message_id;
    elseif v_is_shown then
        select v_claim_id as claim_id, m.message_id, j.attempt,
               m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
               v_lease_until as lease_until, m.last_error
        from json_table(
            v_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        order by j.place;
    else
        -- A locking read: the old snapshot of an open transaction does not show newer messages.
        -- Other paths do not lock, because a producer that names a message as a predecessor holds
        -- its row.
        select v_claim_id as claim_id, m.message_id, j.attempt,
               m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
               v_lease_until as lease_until, m.last_error
        from json_table(
            v_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        order by j.place
        /*!80000 for share of m */ /*M!100600 lock in share mode */;
    end if;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
