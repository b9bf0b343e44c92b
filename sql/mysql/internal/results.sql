-- Results: how messages ended, and waiting for that.
--
-- If a queue has result_seconds, the call that ends a message adds a row to result in the same
-- transaction: completed with its result, dead with its last error, cancelled or expired. reset
-- deletes it. get_result reads it by key; wait_for_result polls it in short transactions of a few
-- reads by key. maintain purges in the order of finished_at, from a floor. Without result_seconds
-- complete runs no statement for results.
--
--   complete -> check_results
--   complete, block, propagate_deaths, ... -> push_result
--   get_result -> read_result
--   wait_for_result -> poll_result -> read_result
--   maintain_retention -> purge_results
--
-- Writes result. Only reads archive, dead, lane, message, queue.

drop procedure if exists rowq.internal_check_results;

delimiter //
create procedure rowq.internal_check_results(
    p_results longtext,
    p_count int,
    p_result_seconds double
)
sql security definer
modifies sql data
begin
-- purpose   Refuse results that are invalid, are not one per message, or are not kept by the queue.
-- errors    RQ711
    declare c_longest int default 1048576;
    declare v_error varchar(120);
    declare v_position int default 0;
    declare v_result longtext;
    declare v_length bigint;

    if p_result_seconds = 0 then
        call rowq.internal_refuse('the queue does not keep results: result_seconds is 0');
    end if;
    if locate(x'ED', cast(p_results as binary)) > 0 then
        call rowq.internal_check_text('results', p_results);
    end if;
    call rowq.internal_json_error('results', p_results, 'ARRAY', 21, null, v_error);
    if v_error is null and json_length(p_results) <> p_count then
        set v_error = concat(
            'results must have one value per message: got ', json_length(p_results),
            ' results for ', p_count, ' messages'
        );
    end if;
    while v_error is null and v_position is not null and char_length(p_results) > c_longest do
        set v_result = null;
        select j.place, j.result into v_position, v_result
        from json_table(
            p_results, '$[*]' columns (place for ordinality, result json path '$')
        ) j
        where j.place > v_position
          and char_length(j.result) > c_longest
        limit 1;
        if v_result is null then
            set v_position = null;
        else
            call rowq.internal_json_length(v_result, v_length);
            if v_length > c_longest then
                set v_error = concat('a result must be at most ', c_longest, ' characters');
            end if;
        end if;
    end while;
    if v_error is not null then
        call rowq.internal_refuse(v_error);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_push_result;

delimiter //
create procedure rowq.internal_push_result(
    p_queue_id int,
    p_messages longtext,
    p_state varchar(20),
    p_error longtext,
    p_results longtext,
    p_asked_ids longtext
)
sql security definer
modifies sql data
begin
-- purpose   Record how messages ended, if the queue keeps results; p_results follows p_asked_ids.
-- locks     result rows
--
-- Without p_error a dead message keeps the error of its row in dead.
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_result_seconds double;

    select q.result_seconds into v_result_seconds
    from rowq.queue q
    where q.queue_id = p_queue_id;

    if v_result_seconds > 0 and p_results is null then
        -- A dead message that is cancelled or purged already has a row.
        insert into rowq.result (queue_id, message_id, finished_at, state, last_error)
        select p_queue_id, j.message_id, v_now, p_state, left(p_error, 2000)
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        on duplicate key update
            finished_at = v_now,
            state       = p_state;
        if p_state = 'dead' and p_error is null then
            update json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.dead d force index (primary)
                on d.queue_id = p_queue_id
               and d.message_id = j.message_id
            straight_join rowq.result r force index (primary)
                on r.queue_id = p_queue_id
               and r.message_id = j.message_id
            set r.last_error = d.last_error;
        end if;
    elseif v_result_seconds > 0 then
        -- The limit makes the engine materialize the results instead of parsing the text per
        -- message.
        insert into rowq.result (queue_id, message_id, finished_at, state, result)
        select p_queue_id, j.message_id, v_now, p_state,
               if(json_type(r.result) = 'NULL', null, r.result)
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join (
            select a.message_id, min(a.place) as place
            from json_table(
                p_asked_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
            ) a
            group by a.message_id
        ) w on w.message_id = j.message_id
        straight_join (
            select x.place, x.result
            from json_table(
                p_results, '$[*]' columns (place for ordinality, result json path '$')
            ) x
            limit 10000
        ) r on r.place = w.place;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_read_result;

delimiter //
create procedure rowq.internal_read_result(
    p_queue_id int,
    p_message_id bigint,
    out p_state varchar(20),
    out p_finished_at datetime(6),
    out p_result longtext,
    out p_last_error varchar(2000)
)
sql security definer
reads sql data
begin
-- purpose   Return the state of a message, with its result if it has ended; nulls if it is unknown.
    declare v_enqueued_at, v_due_at, v_leased_at, v_lease_until, v_finished_at datetime(6);
    declare v_lane, v_attempt smallint;
    declare v_claim_id, v_waits_for bigint;
    declare v_worker_name varchar(200);
    declare v_group_key varbinary(800);
    declare v_progress varchar(2000);
    declare v_found_state varchar(20);
    set p_state = null, p_finished_at = null, p_result = null, p_last_error = null;

    select m.enqueued_at, m.due_at, m.group_key into v_enqueued_at, v_due_at, v_group_key
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.queue_id = p_queue_id;
    if v_enqueued_at is not null then
        call rowq.internal_locate_messages(
            p_queue_id, p_message_id, v_enqueued_at, v_group_key, v_due_at, v_found_state, v_lane,
            v_attempt, v_claim_id, v_worker_name, v_leased_at, v_lease_until, v_finished_at,
            v_waits_for, v_progress
        );
    end if;

    if v_found_state in ('ready', 'delayed', 'blocked', 'leased') then
        set p_state = v_found_state;
    else
        -- Read the result last: it was committed together with the end seen above.
        select r.state, r.finished_at, r.result, r.last_error
        into p_state, p_finished_at, p_result, p_last_error
        from rowq.result r force index (primary)
        where r.queue_id = p_queue_id
          and r.message_id = p_message_id
          and r.message_id > 0;
        if p_state is null and v_found_state is not null then
            set p_state = v_found_state, p_finished_at = v_finished_at;
            select d.last_error into p_last_error
            from rowq.dead d force index (primary)
            where d.queue_id = p_queue_id
              and d.message_id = p_message_id;
        elseif p_state is null then
            select a.state, a.finished_at into p_state, p_finished_at
            from rowq.archive a force index (archive_message_ix)
            where a.queue_id = p_queue_id
              and a.message_id = p_message_id;
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_poll_result;

delimiter //
create procedure rowq.internal_poll_result(
    p_queue_name longtext,
    p_message_id bigint,
    p_until datetime(6),
    inout p_pause double,
    out p_answer longtext
)
sql security definer
modifies sql data
begin
-- purpose   Return the row of get_result as a JSON object, or the pause before the next poll.
-- errors    RQ701 RQ711
--
-- p_pause is the pause before this poll.
    declare v_queue_id int;
    declare v_result_seconds, v_left double;
    declare v_is_last boolean default utc_timestamp(6) >= p_until;
    declare v_state varchar(20);
    declare v_finished_at datetime(6);
    declare v_result longtext;
    declare v_last_error varchar(2000);
    set p_answer = null;

    -- Most polls need only the result, by its key.
    select q.queue_id, q.result_seconds, r.state, r.finished_at, r.result, r.last_error
    into v_queue_id, v_result_seconds, v_state, v_finished_at, v_result, v_last_error
    from rowq.queue q
    left join rowq.result r force index (primary)
        on r.queue_id = q.queue_id
       and r.message_id = p_message_id
       and r.message_id > 0
    where q.queue_name = cast(p_queue_name as binary);
    if v_queue_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    elseif p_message_id is null then
        call rowq.internal_refuse('message_id is required');
    end if;

    -- The first and the last poll read the message's state.
    if v_state is null and (p_pause is null or v_is_last) then
        call rowq.internal_read_result(
            v_queue_id, p_message_id, v_state, v_finished_at, v_result, v_last_error
        );
        set v_is_last = v_is_last or v_state is null;
    end if;
    if v_is_last or v_finished_at is not null then
        if v_state is not null then
            set p_answer = json_object(
                'message_id', p_message_id + 0, 'state', v_state,
                'finished_at', date_format(v_finished_at, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                'result', json_extract(v_result, '$'), 'last_error', v_last_error
            );
        end if;
        set p_pause = null;
    else
        if v_result_seconds = 0 then
            call rowq.internal_refuse('the queue does not keep results: result_seconds is 0');
        end if;
        set v_left = timestampdiff(microsecond, utc_timestamp(6), p_until) / 1000000,
            p_pause = least(coalesce(p_pause * 2, 0.02), 0.25, greatest(v_left, 0));
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_purge_results;

delimiter //
create procedure rowq.internal_purge_results(
    p_queue_id int,
    p_seconds double,
    p_limit int,
    out p_purged int
)
sql security definer
modifies sql data
begin
-- purpose   Delete up to p_limit expired results; return how many.
-- locks     a row of lane, skipped if locked, which elects one session; result rows, skipping
--           locked ones
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_before datetime(6) default v_now - interval round(p_seconds * 1000000) microsecond;
    declare v_latest bigint default timestampdiff(
        microsecond, v_epoch, least(v_before, v_now - interval 500000 microsecond)
    );
    declare v_floor, v_first bigint;
    declare v_since datetime(6);
    declare v_seen, v_old longtext;
    set p_purged = 0;

    -- Read the current floor: an old snapshot may show purged rows, and locking one would lock its
    -- gap.
    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = -7 /* result */
    for update skip locked;
    set v_since = v_epoch + interval v_floor microsecond;

    -- Read rows without locks, then lock them by their full keys, so that no gap is locked. A
    -- longer list could be cut at group_concat_max_len.
    if v_since is not null then
        select json_arrayagg(h.message_id) into v_seen
        from (
            select r.message_id, r.state
            from rowq.result r force index (result_finished_ix)
            where r.queue_id = p_queue_id
              and r.finished_at >= v_since
              and r.finished_at < v_before
            order by r.queue_id, r.finished_at
            limit p_limit
        ) h;
    end if;
    if v_seen is not null then
        select json_arrayagg(h.message_id) into v_old
        from (
            select r.message_id, r.state
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.result r force index (primary)
                on r.queue_id = p_queue_id
               and r.message_id = j.message_id
            where r.finished_at < v_before
            for update /*!80000 of r */ skip locked
        ) h;
    end if;

    if v_old is not null then
        delete r
        from json_table(v_old, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.result r force index (primary)
            on r.queue_id = p_queue_id
           and r.message_id = j.message_id;
        set p_purged = row_count();
        call rowq.internal_first_key(p_queue_id, -7 /* result */, v_floor, v_first);
        set v_first = least(v_first, v_latest);
        if v_first > v_floor then
            call rowq.internal_move_floor(p_queue_id, -7 /* result */, v_floor, v_first);
        end if;
    end if;
end//
delimiter ;
