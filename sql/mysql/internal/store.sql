-- Store: new messages, dedup keys, and delayed messages that are due.
--
-- A message is one row of message and one row of the table where it waits: ready, delayed,
-- group_waiting or blocked. A plain batch has a fast path of two inserts. An unfinished message
-- with a dedup key has a row in dedup. A producer of the same key waits for that row and gets the
-- first message's id back as a duplicate. promote moves due messages from delayed to ready, or into
-- their groups.
--
-- If the row of an ended message's dedup key is locked, a second row with the byte FF before the
-- key marks it, and maintain deletes both later.
--
--   enqueue, publish, check_schedule, ... -> message_error
--   store_batch -> parse_message -> message_error
--   check_unbound -> parsed_error -> parse_message
--   enqueue, propagate_deaths, end_linked, ... -> release_dedup_keys
--   enqueue, publish, enqueue_tick -> store -> dedup_owner
--   enqueue, publish, enqueue_tick -> store_group_waiting
--   enqueue_batch, publish_batch -> store_batch -> store, store_group_waiting, release_dedup_keys
--   enqueue_batch -> store_plain
--   retry_later, release -> push_delayed -> push_ready
--   release, reset, release_group_slots, ... -> push_ready
--   reset -> retake_dedup_keys
--   run_deferred -> free_dedup_keys
--   dequeue, maintain_delivery -> promote -> lock_due, promote_group_waiting, push_ready
--
-- Writes dedup, delayed, expiry, group_waiting, message, ready, deferred. Only reads lane, queue.

drop procedure if exists rowq.internal_message_error;

delimiter //
create procedure rowq.internal_message_error(
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_delay_seconds double,
    p_run_at datetime(6),
    p_dedup_key longtext,
    p_max_attempts int,
    p_group_key longtext,
    p_predecessor_ids longtext,
    p_on_predecessor_dead longtext,
    p_expire_seconds double,
    p_producer_name longtext,
    p_max_body_length int,
    out p_error varchar(120)
)
sql security definer
modifies sql data
begin
-- purpose   Return the first error in the arguments of enqueue, or null.
    declare v_is_good boolean;
    set p_error = case
        when p_priority not between 0 and 9
            then concat('priority must be between 0 and 9, got ', p_priority)
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary are mutually exclusive'
        when char_length(p_message_type) > 200
            then 'message_type must be at most 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at are mutually exclusive'
        when p_delay_seconds not between 0 and 315360000
            then concat('delay_seconds must be between 0 and 315360000, got ', p_delay_seconds)
        when p_run_at > utc_timestamp(6) + interval 3650 day
            then 'run_at must be within the next 10 years'
        when char_length(p_dedup_key) not between 1 and 200
            then 'dedup_key must be 1 to 200 characters'
        when locate('schedule:', cast(p_dedup_key as binary)) = 1
            then 'dedup_key must not begin with schedule:, which is reserved'
        when char_length(p_group_key) not between 1 and 200
            then 'group_key must be 1 to 200 characters'
        when p_max_attempts not between 0 and 10000
            then concat('max_attempts must be between 0 and 10000, got ', p_max_attempts)
        when not coalesce(
                p_on_predecessor_dead in ('hold', 'continue', 'fail'),
                p_on_predecessor_dead is null
            )
            then concat(
                'on_predecessor_dead must be hold, continue or fail, got ',
                left(p_on_predecessor_dead, 40)
            )
        when p_expire_seconds not between 0.001 and 315360000
            then concat(
                'expire_seconds must be between 0.001 and 315360000, got ', p_expire_seconds
            )
        when char_length(p_producer_name) > 200
            then 'producer_name must be at most 200 characters'
    end;
    if p_predecessor_ids is not null and p_error is null then
        call rowq.internal_is_id_list(p_predecessor_ids, v_is_good);
        if not v_is_good then
            set p_error = 'predecessor_ids must be a list of at most 10000 ids without nulls';
        end if;
    end if;
    -- The check of internal_check_text; without a byte ED the engine skips the conversion.
    if locate(
            x'ED', cast(
                concat_ws(
                    '', p_body, p_message_type, p_headers, p_dedup_key, p_group_key, p_producer_name
                ) as binary
            )
        ) > 0
       and convert(
               convert(
                   concat_ws(
                       '', p_body, p_message_type, p_headers, p_dedup_key, p_group_key,
                       p_producer_name
                   )
                   using utf16
               )
               using utf8mb4
           ) <> concat_ws(
               '', p_body, p_message_type, p_headers, p_dedup_key, p_group_key, p_producer_name
           )
       and p_error is null then
        set p_error = 'body, headers, a name or a key contains an unpaired surrogate';
    end if;
    if p_headers is not null and p_error is null then
        call rowq.internal_json_error('headers', p_headers, 'OBJECT', 20, 65536, p_error);
    end if;

    -- Call a procedure for the length, because the engine spends time even on statements that it
    -- skips. Headers are at most 65536 characters, and JSON needs at most 6 bytes per character, so
    -- a body below this limit is never too long.
    if coalesce(length(p_body), length(p_body_binary), 0)
        > least(
            p_max_body_length, (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
        )
       and p_error is null then
        call rowq.internal_body_error(
            p_body, p_body_binary, p_headers, p_max_body_length, p_error
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_parse_message;

delimiter //
create procedure rowq.internal_parse_message(
    p_message longtext,
    p_is_published boolean,
    p_max_body_length int,
    out p_body longtext,
    out p_body_binary longblob,
    out p_message_type longtext,
    out p_headers longtext,
    out p_priority int,
    out p_delay_seconds double,
    out p_run_at datetime(6),
    out p_dedup_key longtext,
    out p_max_attempts int,
    out p_group_key longtext,
    out p_predecessor_ids longtext,
    out p_positions longtext,
    out p_on_predecessor_dead longtext,
    out p_expire_seconds double,
    out p_producer_name longtext,
    out p_error varchar(120)
)
sql security definer
modifies sql data
begin
-- purpose   Parse and check one message of enqueue_batch or, with a topic, of publish_batch.
    declare c_keys longtext default if(
        p_is_published,
        '["body", "body_base64", "message_type", "headers", "priority", "delay_seconds", "run_at",
            "dedup_key", "max_attempts", "group_key", "topic", "expire_seconds", "producer_name"]',
        '["body", "body_base64", "message_type", "headers", "priority", "delay_seconds", "run_at",
            "dedup_key", "max_attempts", "group_key", "predecessor_ids", "predecessor_positions",
            "on_predecessor_dead", "expire_seconds", "producer_name"]'
    );
    declare v_keys, v_key, v_value, v_type, v_topic longtext;
    declare v_at int default 0;
    declare exit handler for sqlexception
        set p_error = concat(v_key, ' is invalid, got ', left(v_value, 40));
    set p_body = null, p_body_binary = null, p_message_type = null, p_headers = null,
        p_priority = 5, p_delay_seconds = null, p_run_at = null, p_dedup_key = null,
        p_max_attempts = null, p_group_key = null, p_predecessor_ids = null, p_positions = null,
        p_on_predecessor_dead = null, p_expire_seconds = null, p_producer_name = null,
        p_error = null;

    if coalesce(not json_valid(p_message), true) or json_type(p_message) <> 'OBJECT' then
        set p_error = 'a message must be a JSON object';
    else
        set v_keys = json_keys(p_message);
    end if;

    entries: while p_error is null and v_at < json_length(v_keys) do
        set v_key = json_unquote(json_extract(v_keys, concat('$[', v_at, ']'))), v_at = v_at + 1;
        if not json_contains(c_keys, json_quote(v_key)) then
            set p_error = concat('unknown key ', left(v_key, 60));
            leave entries;
        end if;
        set v_value = json_extract(p_message, concat('$.', v_key));
        set v_type = json_type(v_value);
        if v_type = 'NULL' then
            iterate entries;
        end if;

        if v_key = 'body' then
            set p_body = if(v_type = 'STRING', json_unquote(v_value), v_value);
        elseif v_key = 'headers' then
            if v_type <> 'OBJECT' then
                set p_error = 'headers must be a JSON object';
            end if;
            set p_headers = v_value;
        elseif v_key in ('priority', 'max_attempts') then
            if v_type not in ('INTEGER', 'UNSIGNED INTEGER') or char_length(v_value) > 9 then
                set p_error = concat(v_key, ' must be an integer, got ', left(v_value, 40));
            elseif v_key = 'priority' then
                set p_priority = v_value;
            else
                set p_max_attempts = v_value;
            end if;
        elseif v_key in ('delay_seconds', 'expire_seconds') then
            if v_type not in ('INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL') then
                set p_error = concat(v_key, ' must be a JSON number');
            elseif v_key = 'delay_seconds' then
                set p_delay_seconds = v_value;
            else
                set p_expire_seconds = v_value;
            end if;
        elseif v_key = 'predecessor_ids' then
            set p_predecessor_ids = v_value;
        elseif v_key = 'predecessor_positions' then
            set p_positions = v_value;
        elseif v_type <> 'STRING' then
            set p_error = concat(v_key, ' must be a JSON string');
        elseif v_key = 'message_type' then
            set p_message_type = json_unquote(v_value);
        elseif v_key = 'producer_name' then
            set p_producer_name = json_unquote(v_value);
        elseif v_key = 'dedup_key' then
            set p_dedup_key = json_unquote(v_value);
        elseif v_key = 'group_key' then
            set p_group_key = json_unquote(v_value);
        elseif v_key = 'on_predecessor_dead' then
            set p_on_predecessor_dead = json_unquote(v_value);
        elseif v_key = 'topic' then
            set v_topic = json_unquote(v_value);
        elseif v_key = 'body_base64' then
            set p_body_binary = from_base64(json_unquote(v_value));
            if p_body_binary is null then
                set p_error = 'body_base64 must be valid base64';
            end if;
        else
            call rowq.internal_parse_timestamp(json_unquote(v_value), p_run_at);
            if p_run_at is null then
                set p_error = concat(
                    'run_at must be an ISO 8601 timestamp, got ', left(json_unquote(v_value), 40)
                );
            end if;
        end if;
    end while;

    if p_is_published and p_error is null then
        call rowq.internal_topic_error('topic', v_topic, false, p_error);
        set p_message_type = coalesce(p_message_type, v_topic);
    end if;
    if p_error is null then
        call rowq.internal_message_error(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
            p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
            p_on_predecessor_dead, p_expire_seconds, p_producer_name, p_max_body_length, p_error
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_parsed_error;

delimiter //
create procedure rowq.internal_parsed_error(p_message longtext, out p_error varchar(120))
sql security definer
modifies sql data
begin
-- purpose   Return the error in a message of publish_batch that no queue is bound to, or null.
    declare v_body, v_message_type, v_headers, v_dedup_key, v_group_key longtext;
    declare v_predecessor_ids, v_positions, v_on_predecessor_dead, v_producer_name longtext;
    declare v_body_binary longblob;
    declare v_priority, v_max_attempts int;
    declare v_delay_seconds, v_expire_seconds double;
    declare v_run_at datetime(6);
    call rowq.internal_parse_message(
        p_message, true, 33554432, v_body, v_body_binary, v_message_type, v_headers, v_priority,
        v_delay_seconds, v_run_at, v_dedup_key, v_max_attempts, v_group_key, v_predecessor_ids,
        v_positions, v_on_predecessor_dead, v_expire_seconds, v_producer_name, p_error
    );
end//
delimiter ;

drop procedure if exists rowq.internal_release_dedup_keys;

delimiter //
create procedure rowq.internal_release_dedup_keys(p_queue_id int, p_links longtext)
sql security definer
modifies sql data
begin
-- purpose   Release the dedup keys of ended messages; leave locked ones to maintain.
-- locks     dedup rows, without waiting; new dedup and deferred rows
-- differs   on PostgreSQL a producer that gets a duplicate locks no row
    declare v_free longtext;
    declare v_count, v_keys int;

    select sum(j.dedup_key is not null) into v_keys
    from json_table(p_links, '$[*]' columns (dedup_key varchar(1600) path '$[2]')) j;
    if v_keys > 0 then
        select json_arrayagg(h.message_id), count(*) into v_free, v_count
        from (
            select k.message_id
            from json_table(
                p_links,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    dedup_key varchar(1600) path '$[2]'
                )
            ) j
            straight_join rowq.dedup k force index (primary)
                on k.queue_id = p_queue_id
               and k.dedup_key = unhex(j.dedup_key)
               and k.message_id = j.message_id
            limit 1000000
            for update /*!80000 of k */ skip locked
        ) h;
        delete k
        from (
            select distinct x.message_id
            from json_table(v_free, '$[*]' columns (message_id bigint path '$')) x
        ) f
        straight_join json_table(
            p_links,
            '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[2]')
        ) j on j.message_id = f.message_id
        straight_join rowq.dedup k force index (primary)
            on k.queue_id = p_queue_id
           and k.dedup_key = unhex(j.dedup_key)
           and k.message_id = j.message_id;
        if v_count < v_keys then
            -- A producer that got a duplicate may hold the row in a transaction that never ends.
            insert into rowq.dedup (queue_id, dedup_key, message_id)
            select p_queue_id, concat(x'FF', unhex(j.dedup_key)), j.message_id
            from json_table(
                p_links,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    dedup_key varchar(1600) path '$[2]'
                )
            ) j
            left join (
                select distinct x.message_id
                from json_table(v_free, '$[*]' columns (message_id bigint path '$')) x
            ) f on f.message_id = j.message_id
            where j.dedup_key is not null
              and f.message_id is null
            on duplicate key update message_id = values(message_id);
            insert into rowq.deferred (queue_id, due_at, deferred_id)
            values (p_queue_id, utc_timestamp(6), uuid_short() & 9007199254740991);
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_store;

delimiter //
create procedure rowq.internal_store(
    p_queue_id int,
    p_position int,
    p_now datetime(6),
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_due_at datetime(6),
    p_dedup_key longtext,
    p_max_attempts int,
    p_group_key longtext,
    p_predecessor_ids longtext,
    p_own_id bigint,
    p_on_predecessor_dead longtext,
    p_expire_seconds double,
    p_producer_name longtext,
    p_owns_transaction boolean,
    out p_message_id bigint,
    out p_outcome varchar(20),
    out p_joining varchar(2000),
    out p_is_failed boolean
)
sql security definer
modifies sql data
begin
-- purpose   Store one checked message in the table where it waits.
-- locks     new rows; with a dedup key, waits for open enqueues of it; as internal_block
-- errors    RQ711
-- differs   PostgreSQL stores a batch as a set; here each id comes from its own insert
--
-- p_joining is a message for internal_store_group_waiting, or null. If p_is_failed, the caller
-- releases the dedup key. p_own_id is for internal_block.
    declare v_lane smallint default p_priority * 2 + 1;
    declare v_is_open boolean;
    declare v_is_taken boolean default false;
    declare v_state varchar(20) default 'free';
    declare v_enqueued_at datetime(6) default p_now + interval p_position microsecond;
    set p_outcome = null, p_joining = null;

    hold: loop
        if p_dedup_key is not null then
            call rowq.internal_dedup_owner(p_queue_id, p_dedup_key, v_is_taken, p_message_id);
            if p_message_id is not null then
                set p_outcome = 'duplicate';
                leave hold;
            end if;
        end if;

        insert into rowq.message (
            queue_id, max_attempts, enqueued_at, due_at, message_type, dedup_key, headers, body,
            body_binary, group_key, expires_at, producer_name
        )
        values (
            p_queue_id, p_max_attempts, v_enqueued_at, if(p_due_at > p_now, p_due_at, null),
            p_message_type, p_dedup_key, p_headers, p_body, p_body_binary, p_group_key,
            v_enqueued_at + interval round(p_expire_seconds * 1000000) microsecond,
            p_producer_name
        );
        set p_message_id = last_insert_id();
        if p_dedup_key is null then
            leave hold;
        end if;

        set v_is_taken = false;
        begin
            -- Handle a duplicate key of this insert only: a message_id in use must stay an error.
            declare continue handler for 1062 set v_is_taken = true;
            insert into rowq.dedup (queue_id, dedup_key, message_id)
            values (p_queue_id, p_dedup_key, p_message_id);
        end;
        if not v_is_taken then
            leave hold;
        end if;
        -- Another producer has committed the key, or it is free again: retry.
        delete from rowq.message
        where message_id = p_message_id;
    end loop;

    if p_outcome is null then
        set p_outcome = 'enqueued';
        if p_predecessor_ids is not null then
            call rowq.internal_block(
                p_queue_id, p_message_id, p_position, v_lane, if(p_due_at > p_now, p_due_at, null),
                p_group_key, p_predecessor_ids, p_own_id, p_on_predecessor_dead,
                p_owns_transaction, v_state
            );
        end if;
    end if;
    set p_is_failed = v_state = 'failed';
    if p_expire_seconds is not null and p_outcome = 'enqueued' then
        insert into rowq.expiry (queue_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            p_queue_id,
            v_enqueued_at + interval round(least(p_expire_seconds, 86400) * 1000000) microsecond,
            uuid_short() & 9007199254740991, p_message_id, v_lane,
            timestampdiff(microsecond, '1970-01-01', v_enqueued_at)
        );
    end if;
    if p_outcome = 'enqueued' and v_state = 'free' then
        select l.is_open into v_is_open
        from rowq.lane l force index (primary)
        where l.queue_id = p_queue_id
          and l.lane = v_lane;
        if not v_is_open then
            call rowq.internal_open_lane(p_queue_id, v_lane);
        end if;

        -- Insert values: a select would lock other rows under the caller's repeatable read.
        if p_due_at > p_now then
            insert into rowq.delayed (queue_id, due_at, message_id, lane, group_key)
            values (p_queue_id, p_due_at, p_message_id, v_lane, p_group_key);
        elseif p_group_key is not null then
            set p_joining = json_array(
                p_message_id + 0, v_lane + 0, 0, hex(p_group_key),
                timestampdiff(microsecond, '1970-01-01', v_enqueued_at)
            );
        else
            insert into rowq.ready (queue_id, lane, seq, message_id, is_keyed)
            values (
                p_queue_id, v_lane, timestampdiff(microsecond, '1970-01-01', v_enqueued_at),
                p_message_id, p_dedup_key is not null
            );
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_dedup_owner;

delimiter //
create procedure rowq.internal_dedup_owner(
    p_queue_id int,
    p_dedup_key varbinary(800),
    p_is_there boolean,
    out p_message_id bigint
)
sql security definer
modifies sql data
begin
-- purpose   Return the unfinished message that has a dedup key, or null.
-- locks     the dedup row, shared; deletes a row that internal_release_dedup_keys has left, and
--           waits for a producer that holds it
    declare v_ended_id bigint;
    set p_message_id = null;
    if not p_is_there then
        select d.message_id into p_message_id
        from rowq.dedup d force index (primary)
        where d.queue_id = p_queue_id
          and d.dedup_key = p_dedup_key;
    end if;
    if p_is_there or p_message_id is not null then
        select d.message_id into v_ended_id
        from rowq.dedup d force index (primary)
        where d.queue_id = p_queue_id
          and d.dedup_key = concat(x'FF', p_dedup_key);
        if v_ended_id is not null then
            delete from rowq.dedup
            where queue_id = p_queue_id
              and dedup_key in (p_dedup_key, concat(x'FF', p_dedup_key))
              and message_id = v_ended_id;
        end if;

        -- Read again with a lock: an old snapshot may show a deleted row, or miss a new one.
        set p_message_id = null;
        select d.message_id into p_message_id
        from rowq.dedup d force index (primary)
        where d.queue_id = p_queue_id
          and d.dedup_key = p_dedup_key
        lock in share mode;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_store_group_waiting;

delimiter //
create procedure rowq.internal_store_group_waiting(p_queue_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- purpose   Make new messages of groups ready, or let them wait in their groups.
-- locks     as internal_join_groups; new ready rows
--
-- A message is [message_id, lane, attempt, group key in hex, seq].
    declare v_waiting longtext;
    call rowq.internal_join_groups(p_queue_id, p_messages, v_waiting);

    insert into rowq.ready (queue_id, lane, seq, message_id)
    select p_queue_id, j.lane, j.seq, j.message_id
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            seq bigint path '$[4]'
        )
    ) j
    left join (
        select distinct w.message_id
        from json_table(v_waiting, '$[*]' columns (message_id bigint path '$')) w
    ) h on h.message_id = j.message_id
    where h.message_id is null;
end//
delimiter ;

drop procedure if exists rowq.internal_store_batch;

delimiter //
create procedure rowq.internal_store_batch(
    p_queue_id int,
    p_messages longtext,
    p_positions longblob,
    p_owns_transaction boolean,
    out p_results longtext
)
sql security definer
modifies sql data
begin
-- purpose   Store the messages of a batch; return [position, message_id, outcome] of each.
-- locks     as enqueue; dedup and group keys in key order; as internal_block
-- errors    RQ711
-- differs   PostgreSQL stores a batch as a set; here each id comes from its own insert
--
-- p_positions is null for enqueue_batch. For publish_batch it has the positions in the whole batch,
-- 5 digits each, or '' if they are the same.
    declare v_position int;
    declare v_message, v_chunk, v_body, v_message_type, v_headers, v_dedup_key longtext;
    declare v_group_key, v_joining, v_all_joining longtext;
    declare v_predecessor_ids, v_positions, v_on_predecessor_dead, v_producer_name longtext;
    declare v_stored longtext default '';
    declare v_failed, v_slice, v_links, v_held longtext;
    declare v_body_binary longblob;
    declare v_priority, v_max_attempts int;
    declare v_delay_seconds, v_expire_seconds double;
    declare v_delay bigint;
    declare v_run_at datetime(6);
    declare v_error varchar(120);
    declare v_message_id, v_own_id bigint;
    declare v_outcome varchar(20);
    declare v_is_end boolean default false;
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_seq bigint default timestampdiff(microsecond, '1970-01-01', v_now);
    declare v_is_plain, v_is_failed boolean;
    declare v_has_positions boolean
        default json_contains_path(p_messages, 'one', '$[*].predecessor_positions');
    declare v_is_in_order boolean
        default v_has_positions or json_contains_path(p_messages, 'one', '$[*].group_key');
    declare v_max_body_length, v_usual_length int;
    -- Store in key order, so that two batches with the same keys cannot deadlock. Messages with
    -- groups or predecessor_positions need ids in the order of the batch; a deadlock is retried. A
    -- plain message has only a text body. The limit makes MySQL sort the texts by reference: JSON
    -- values would exceed the memory of the sort.
    declare each_message cursor for
        select h.position, h.message, h.is_plain, h.body
        from (
            select j.position, j.dedup_key, cast(j.message as char) as message,
                   coalesce(
                       json_length(j.message) = 1
                       and json_type(json_extract(j.message, '$.body')) = 'STRING',
                       false
                   ) as is_plain,
                   json_unquote(json_extract(j.message, '$.body')) as body
            from json_table(
                p_messages,
                '$[*]' columns (
                    position for ordinality,
                    message json path '$',
                    dedup_key varchar(200) path '$.dedup_key'
                )
            ) j
            limit 10000
        ) h
        order by if(v_is_in_order, null, h.dedup_key), h.position;
    declare continue handler for not found set v_is_end = true;
    -- Error 1301: a function's result would exceed max_allowed_packet.
    declare exit handler for 1301
        call rowq.internal_refuse(
            'the batch exceeds max_allowed_packet; use fewer messages'
        );
    set p_results = '[', v_chunk = '';

    select q.max_body_length,
           least(
               q.max_body_length, (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
           )
    into v_max_body_length, v_usual_length
    from rowq.queue q
    where q.queue_id = p_queue_id;

    open each_message;
    messages: loop
        fetch each_message into v_position, v_message, v_is_plain, v_body;
        if v_is_end then
            leave messages;
        end if;
        set v_is_failed = false;
        if v_is_plain and length(v_body) <= v_usual_length then
            -- Fast path, 5 times as fast as internal_store: internal_message_error accepts such a
            -- body, and the lane of the default priority is always open.
            insert into rowq.message (queue_id, enqueued_at, body)
            values (p_queue_id, v_now + interval v_position microsecond, v_body);
            set v_message_id = last_insert_id(), v_outcome = 'enqueued';
            insert into rowq.ready (queue_id, lane, seq, message_id, is_keyed)
            values (p_queue_id, 11, v_seq + v_position, v_message_id, false);
        else
            call rowq.internal_parse_message(
                v_message, p_positions is not null, v_max_body_length, v_body, v_body_binary,
                v_message_type, v_headers, v_priority, v_delay_seconds, v_run_at, v_dedup_key,
                v_max_attempts, v_group_key, v_predecessor_ids, v_positions,
                v_on_predecessor_dead, v_expire_seconds, v_producer_name, v_error
            );
            set v_own_id = null;
            if v_positions is not null and v_error is null then
                call rowq.internal_batch_predecessors(
                    v_position, v_stored, v_positions, v_predecessor_ids, v_own_id, v_error
                );
            end if;
            if v_error is not null then
                call rowq.internal_refuse(
                    concat(
                        left(v_error, 80), ' (message ',
                        coalesce(
                            nullif(substring(p_positions, v_position * 5 - 4, 5), '') + 0,
                            v_position
                        ),
                        ')'
                    )
                );
            end if;
            -- Delay from enqueued_at, so that messages with the same delay keep their order.
            set v_delay = round(v_delay_seconds * 1000000);
            if v_delay > 0 then
                set v_delay = v_delay + v_position;
            end if;
            call rowq.internal_store(
                p_queue_id, v_position, v_now, v_body, v_body_binary, v_message_type, v_headers,
                v_priority,
                coalesce(v_run_at, v_now + interval v_delay microsecond),
                v_dedup_key, v_max_attempts, v_group_key, v_predecessor_ids, v_own_id,
                v_on_predecessor_dead, v_expire_seconds, v_producer_name, p_owns_transaction,
                v_message_id, v_outcome, v_joining, v_is_failed
            );
            if v_joining is not null then
                if length(v_all_joining) + length(v_joining) + 10 > @@max_allowed_packet then
                    call rowq.internal_store_group_waiting(
                        p_queue_id, concat('[', v_all_joining, ']')
                    );
                    set v_all_joining = null;
                end if;
                set v_all_joining = concat_ws(',', v_all_joining, v_joining);
            end if;
            if v_is_failed then
                set v_failed = concat_ws(',', v_failed, concat('[', v_message_id, ']'));
            end if;
        end if;
        set v_is_end = false;
        if v_has_positions then
            set v_stored = concat(
                v_stored,
                if(v_outcome = 'enqueued' and not v_is_failed, '1', '0'),
                lpad(v_message_id, 19, '0')
            );
        end if;

        -- Build the result in chunks: each concat copies the whole text.
        set v_chunk = concat(
            v_chunk, if(p_results = '[' and v_chunk = '', '', ','),
            '[',
            coalesce(nullif(substring(p_positions, v_position * 5 - 4, 5), '') + 0, v_position),
            ',', v_message_id, ',"', v_outcome, '"]'
        );
        if length(v_chunk) > 5000 then
            set p_results = concat(p_results, v_chunk), v_chunk = '';
        end if;
    end loop;
    close each_message;
    if v_all_joining is not null then
        call rowq.internal_store_group_waiting(p_queue_id, concat('[', v_all_joining, ']'));
    end if;
    -- Release the keys of failed messages last: they deduplicate within this batch.
    set v_failed = concat('[', v_failed, ']');
    while v_failed is not null do
        call rowq.internal_next_slice(v_failed, v_slice);
        call rowq.internal_read_links(v_slice, null, true, false, v_links, v_held);
        call rowq.internal_release_dedup_keys(p_queue_id, v_links);
    end while;
    set p_results = concat(p_results, v_chunk, ']');
end//
delimiter ;

drop procedure if exists rowq.internal_store_plain;

delimiter //
create procedure rowq.internal_store_plain(
    p_queue_id int,
    p_messages longtext,
    out p_first_id bigint
)
sql security definer
modifies sql data
begin
-- purpose   Store a batch of plain messages in two inserts; return the first id, or null.
-- locks     new rows; the auto-increment lock of message during the insert
-- differs   twice as fast as internal_store_batch; null if the batch is not plain
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_count, v_plain_count int;
    declare v_ordinals longtext;
    set p_first_id = null;

    -- The ids of one insert are consecutive in modes 0 and 1 only. Other producers wait for their
    -- ids until it ends, so limit its size.
    if @@global.innodb_autoinc_lock_mode < 2 and length(p_messages) < 1000000 then
        -- A plain message has only a text body that internal_message_error accepts.
        select count(*),
               sum(json_length(j.message) = 1
                   and left(j.body, 1) = '"'
                   and length(j.body) <= least(
                       q.max_body_length,
                       (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
                   ))
        into v_count, v_plain_count
        from rowq.queue q
        straight_join json_table(
            p_messages, '$[*]' columns (message json path '$', body json path '$.body')
        ) j
        where q.queue_id = p_queue_id;
    end if;

    -- The lane of the default priority is always open.
    if v_count = v_plain_count then
        insert into rowq.message (queue_id, enqueued_at, body)
        select p_queue_id, v_now + interval j.position microsecond, json_unquote(j.body)
        from json_table(
            p_messages, '$[*]' columns (position for ordinality, body json path '$.body')
        ) j;
        set p_first_id = last_insert_id();
        -- Generate the ordinals from an array of zeros, which parses faster than the messages.
        set v_ordinals = concat('[0', repeat(',0', v_count - 1), ']');
        insert into rowq.ready (queue_id, lane, seq, message_id, is_keyed)
        select p_queue_id, 11,
               timestampdiff(microsecond, '1970-01-01', v_now) + j.position,
               p_first_id + (j.position - 1) * @@auto_increment_increment,
               false
        from json_table(v_ordinals, '$[*]' columns (position for ordinality)) j;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_push_delayed;

delimiter //
create procedure rowq.internal_push_delayed(
    p_queue_id int,
    p_delayed longtext,
    p_keeps_error boolean,
    p_error longtext
)
sql security definer
modifies sql data
begin
-- purpose   Delay messages until they are due; make those that are already due ready.
-- locks     message rows, without waiting; new delayed and ready rows
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_due longtext;
    declare v_expiring int;

    -- Skip rows that a producer holds: cancel does not find those messages until they are due.
    -- Without a limit MySQL would merge the subquery into the update, and wait.
    update (
        select x.message_id, j.due_at
        from json_table(
            p_delayed, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.message x force index (primary) on x.message_id = j.message_id
        limit 1000000
        for update /*!80000 of x */ skip locked
    ) h
    straight_join rowq.message m force index (primary) on m.message_id = h.message_id
    set m.last_error = if(p_keeps_error, m.last_error, left(p_error, 2000)),
        m.due_at = v_epoch + interval h.due_at microsecond;

    insert into rowq.delayed (queue_id, due_at, message_id, lane, attempt)
    select p_queue_id, v_epoch + interval j.due_at microsecond, j.message_id, j.lane, j.attempt
    from json_table(
        p_delayed,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            due_at bigint path '$[3]'
        )
    ) j
    where v_epoch + interval j.due_at microsecond > v_now;

    select count(*) into v_expiring
    from json_table(p_delayed, '$[*]' columns (message_id bigint path '$[0]')) j
    left join rowq.message m force index (primary) on m.message_id = j.message_id
    where m.expires_at is not null
       or m.message_id is null;
    if v_expiring > 0 then
        call rowq.internal_record_expiry(p_queue_id, p_delayed, null);
    end if;

    select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_due
    from json_table(
        p_delayed,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            due_at bigint path '$[3]'
        )
    ) j
    where v_epoch + interval j.due_at microsecond <= v_now;
    if v_due is not null then
        call rowq.internal_push_ready(p_queue_id, v_due);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_push_ready;

delimiter //
create procedure rowq.internal_push_ready(p_queue_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- purpose   Append messages to their lanes, in the order of the array.
-- locks     new ready and expiry rows; rows of closed lanes, skipping locked ones
    declare v_seq bigint;
    declare v_lane smallint default -1;
    declare v_expiring int;

    -- Find the next closed lane. The first scan also counts messages that expire, or that may
    -- because an old snapshot does not show them.
    lanes: loop
        select min(if(j.lane > v_lane and not l.is_open, j.lane, null)),
               coalesce(v_expiring, sum(m.expires_at is not null or m.message_id is null))
        into v_lane, v_expiring
        from json_table(
            p_messages,
            '$[*]' columns (message_id bigint path '$[0]', lane smallint path '$[1]')
        ) j
        straight_join rowq.lane l force index (primary)
            on l.queue_id = p_queue_id
           and l.lane = j.lane
        left join rowq.message m force index (primary)
            on m.message_id = j.message_id
           and v_expiring is null;
        if v_lane is null then
            leave lanes;
        end if;
        call rowq.internal_open_lane(p_queue_id, v_lane);
    end loop;

    set v_seq = timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));

    insert into rowq.ready (queue_id, lane, seq, message_id, attempt)
    select p_queue_id, j.lane, v_seq + j.position, j.message_id, j.attempt
    from json_table(
        p_messages,
        '$[*]' columns (
            position for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;
    if v_expiring > 0 then
        call rowq.internal_record_expiry(p_queue_id, p_messages, v_seq);
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_retake_dedup_keys;

delimiter //
create procedure rowq.internal_retake_dedup_keys(p_queue_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- purpose   Reserve the dedup keys of dead messages again, unless other messages own them now.
-- locks     new dedup rows, in key order; waits for open enqueues of the same keys
    declare v_rest, v_slice, v_keys longtext;
    declare v_count int;

    -- Insert in key order, as enqueue_batch does, and in slices: one text cannot hold many keys.
    select json_arrayagg(json_array(h.message_id, null, null)) into v_rest
    from (
        select m.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where m.dedup_key is not null
        order by m.dedup_key, m.message_id
        limit 1000000
    ) h;
    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        -- Read the keys first: under innodb_snapshot_isolation an insert ... select that waited for
        -- a key would fail with 1020.
        select json_arrayagg(json_array(m.message_id, hex(m.dedup_key))) into v_keys
        from json_table(v_slice, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        -- If internal_release_dedup_keys has left a key's row, remove the mark. Check first:
        -- locking a missing row locks the gap around it.
        select count(*) into v_count
        from json_table(v_keys, '$[*]' columns (dedup_key varchar(1600) path '$[1]')) j
        straight_join rowq.dedup k force index (primary)
            on k.queue_id = p_queue_id
           and k.dedup_key = concat(x'FF', unhex(j.dedup_key));
        if v_count > 0 then
            delete k
            from json_table(
                v_keys,
                '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
            ) j
            straight_join rowq.dedup k force index (primary)
                on k.queue_id = p_queue_id
               and k.dedup_key = concat(x'FF', unhex(j.dedup_key))
               and k.message_id = j.message_id;
        end if;
        insert ignore into rowq.dedup (queue_id, dedup_key, message_id)
        select p_queue_id, unhex(j.dedup_key), j.message_id
        from json_table(
            v_keys,
            '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
        ) j
        order by unhex(j.dedup_key), j.message_id;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_free_dedup_keys;

delimiter //
create procedure rowq.internal_free_dedup_keys(p_queue_id int, out p_is_done boolean)
sql security definer
modifies sql data
begin
-- purpose   Delete up to 300 dedup keys that internal_release_dedup_keys has left.
-- locks     dedup rows, without waiting; the transaction must be the call's own
--
-- p_is_done is false if more keys are left, or one is still locked.
    declare v_seen, v_free longtext;

    -- Find rows without locks, then lock them by their full keys, so that no gap is locked. The
    -- engine truncates arrays above 1 MB; 300 keys in hex stay below that.
    select json_arrayagg(json_array(h.message_id, hex(h.dedup_key))) into v_seen
    from (
        select k.message_id, substring(k.dedup_key, 2) as dedup_key
        from rowq.dedup k force index (primary)
        where k.queue_id = p_queue_id
          and k.dedup_key >= x'FF'
        order by k.queue_id, k.dedup_key
        limit 300
    ) h;
    select json_arrayagg(hex(h.dedup_key)) into v_free
    from (
        select k.dedup_key
        from json_table(
            v_seen,
            '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
        ) j
        straight_join rowq.dedup k force index (primary)
            on k.queue_id = p_queue_id
           and k.dedup_key = unhex(j.dedup_key)
           and k.message_id = j.message_id
        limit 1000000
        for update /*!80000 of k */ skip locked
    ) h;
    delete k
    from json_table(v_free, '$[*]' columns (dedup_key varchar(1600) path '$')) j
    straight_join rowq.dedup k force index (primary)
        on k.queue_id = p_queue_id
       and k.dedup_key = unhex(j.dedup_key);
    -- Keys that still have the ended message's row are locked. Find the others without a lock: a
    -- delete with a join would lock the joined rows, and wait.
    select json_arrayagg(json_array(j.message_id, j.dedup_key)) into v_seen
    from json_table(
        v_seen,
        '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
    ) j
    left join rowq.dedup o force index (primary)
        on o.queue_id = p_queue_id
       and o.dedup_key = unhex(j.dedup_key)
       and o.message_id = j.message_id
    where o.message_id is null;
    select json_arrayagg(hex(h.dedup_key)) into v_free
    from (
        select k.dedup_key
        from json_table(
            v_seen,
            '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
        ) j
        straight_join rowq.dedup k force index (primary)
            on k.queue_id = p_queue_id
           and k.dedup_key = concat(x'FF', unhex(j.dedup_key))
           and k.message_id = j.message_id
        limit 1000000
        for update /*!80000 of k */ skip locked
    ) h;
    delete k
    from json_table(v_free, '$[*]' columns (dedup_key varchar(1602) path '$')) j
    straight_join rowq.dedup k force index (primary)
        on k.queue_id = p_queue_id
       and k.dedup_key = unhex(j.dedup_key);
    select count(*) = 0 into p_is_done
    from (
        select k.message_id
        from rowq.dedup k force index (primary)
        where k.queue_id = p_queue_id
          and k.dedup_key >= x'FF'
        limit 1
    ) h;
end//
delimiter ;

drop procedure if exists rowq.internal_promote;

delimiter //
create procedure rowq.internal_promote(
    p_queue_id int,
    p_limit int,
    p_owns_transaction boolean,
    out p_promoted int
)
sql security definer
modifies sql data
begin
-- purpose   Move up to p_limit due messages to their lanes or groups, earliest first.
-- locks     delayed rows, skipping locked ones; new ready rows; as internal_try_take_group_slot
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_floor, v_first, v_seen, v_to bigint;
    declare v_since, v_now datetime(6);
    declare v_probe smallint;
    declare v_messages longtext;
    declare v_joined int default 0;
    set p_promoted = 0;

    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = -2 /* delayed */;
    set v_since = v_epoch + interval v_floor microsecond, v_now = utc_timestamp(6);

    select d.attempt into v_probe
    from rowq.delayed d force index (primary)
    where d.queue_id = p_queue_id
      and d.due_at >= v_since
      and d.due_at <= v_now
    order by d.queue_id, d.due_at, d.message_id
    limit 1;
    if v_probe is not null then
        call rowq.internal_lock_due(p_queue_id, v_since, p_limit, v_messages);
    end if;

    if v_messages is not null then
        set v_first = json_extract(v_messages, '$[0][3]');
        select count(j.group_key) into v_joined
        from json_table(v_messages, '$[*]' columns (group_key varchar(1600) path '$[4]')) j;
        if v_joined > 0 then
            call rowq.internal_promote_group_waiting(
                p_queue_id, p_owns_transaction, v_messages, v_joined
            );
        end if;
        set p_promoted = v_joined;
    end if;

    if v_messages is not null then
        delete d
        from json_table(
            v_messages, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.delayed d force index (primary)
            on d.queue_id = p_queue_id
           and d.due_at = v_epoch + interval j.due_at microsecond
           and d.message_id = j.message_id;
        call rowq.internal_push_ready(p_queue_id, v_messages);
        set p_promoted = p_promoted + json_length(v_messages);

        if p_owns_transaction and rand() < 0.08 * p_promoted then
            call rowq.internal_first_key(p_queue_id, -2 /* delayed */, v_floor, v_seen);
            set v_to = least(
                    v_first, coalesce(v_seen, v_first),
                    timestampdiff(microsecond, '1970-01-01', v_now) - 500000
                );
            if v_to > v_floor then
                call rowq.internal_move_floor(p_queue_id, -2 /* delayed */, v_floor, v_to);
            end if;
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_lock_due;

delimiter //
create procedure rowq.internal_lock_due(
    p_queue_id int,
    p_since datetime(6),
    p_limit int,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- purpose   Lock up to p_limit due messages, earliest first, that fit into one text.
-- locks     delayed rows, skipping locked ones
-- differs   elsewhere a range is locked without its gaps
--
-- A message is [message_id, lane, attempt, due_at in microseconds, group key in hex or null].
    -- A key of 800 bytes in hex, 3 numbers and the separators.
    declare c_longest int default 1800;
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_from datetime(6) default p_since;
    declare v_after bigint default 0;
    declare v_seen, v_some longtext;
    -- MariaDB truncates json_arrayagg to group_concat_max_len, which a dequeue does not set.
    declare v_longest bigint default
        /*!80000 @@max_allowed_packet */
        /*M!100600 least(@@max_allowed_packet, @@group_concat_max_len) */;
    declare v_left int default least(p_limit, greatest(1, v_longest div c_longest));
    declare v_scan int default v_left + 50;
    set p_messages = null;

    -- Find rows without locks, then lock them by their full keys, so that no gap is locked where
    -- producers insert.
    scans: while v_left > 0 do
        select json_arrayagg(json_array(
                   h.message_id, h.attempt, timestampdiff(microsecond, '1970-01-01', h.due_at)
               ))
        into v_seen
        from (
            select d.due_at, d.message_id, d.attempt
            from rowq.delayed d force index (primary)
            where d.queue_id = p_queue_id
              and d.due_at >= v_from
              and d.due_at <= v_now
              and (d.due_at > v_from or d.message_id > v_after)
            order by d.queue_id, d.due_at, d.message_id
            limit v_scan
        ) h;
        if v_seen is null then
            leave scans;
        end if;

        select json_arrayagg(json_array(
                   h.message_id, h.lane, h.attempt,
                   timestampdiff(microsecond, '1970-01-01', h.due_at), hex(h.group_key)
               ))
        into v_some
        from (
            select d.due_at, d.message_id, d.lane, d.attempt, d.group_key
            from json_table(
                v_seen, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[2]')
            ) j
            straight_join rowq.delayed d force index (primary)
                on d.queue_id = p_queue_id
               and d.due_at = v_epoch + interval j.due_at microsecond
               and d.message_id = j.message_id
            limit v_left
            for update /*!80000 of d */ skip locked
        ) h;
        if v_some is not null then
            set v_left = v_left - json_length(v_some);
            set p_messages = if(
                p_messages is null, v_some, json_merge_preserve(p_messages, v_some)
            );
        end if;
        if json_length(v_seen) < v_scan then
            leave scans;
        end if;
        set v_from = v_epoch
                + interval json_extract(v_seen, concat('$[', v_scan - 1, '][2]')) microsecond,
            v_after = json_extract(v_seen, concat('$[', v_scan - 1, '][0]')),
            v_scan = least(v_scan * 2, 10000);
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_promote_group_waiting;

delimiter //
create procedure rowq.internal_promote_group_waiting(
    p_queue_id int,
    p_owns_transaction boolean,
    inout p_messages longtext,
    out p_joined int
)
sql security definer
modifies sql data
begin
-- purpose   Let due messages join their groups; leave in p_messages those to make ready.
-- locks     delayed rows, locked by the caller; as internal_try_take_group_slot; new group_waiting
--           rows
--
-- Messages are as internal_lock_due returns them. p_joined counts those that wait in their groups.
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_due_at, v_later datetime(6);
    declare v_message_id, v_free_id bigint;
    declare v_lane smallint;
    declare v_group_key varbinary(800);
    declare v_has_slot boolean;
    declare v_is_late, v_is_end boolean default false;
    declare v_others longtext;
    declare each_message cursor for
        select j.message_id, j.lane, v_epoch + interval j.due_at microsecond, unhex(j.group_key)
        from json_table(
            p_messages,
            '$[*]' columns (
                position for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                due_at bigint path '$[3]',
                group_key varchar(1600) path '$[4]'
            )
        ) j
        where j.group_key is not null
        order by j.position;
    declare continue handler for not found set v_is_end = true;
    set p_joined = 0;

    open each_message;
    messages: loop
        fetch each_message into v_message_id, v_lane, v_due_at, v_group_key;
        if v_is_end then
            leave messages;
        end if;
        -- Wait for a producer at most once per call; postpone the others by 0.5 seconds.
        set v_has_slot = null;
        if not v_is_late then
            call rowq.internal_try_take_group_slot(
                p_queue_id, v_group_key, p_owns_transaction, v_has_slot
            );
        end if;
        set v_is_end = false;
        if v_has_slot then
            iterate messages;
        end if;

        set v_others = concat_ws(',', v_others, v_message_id);
        if v_has_slot is null then
            set v_is_late = true;
            if p_owns_transaction then
                -- A producer that has named the message as a predecessor may hold its row.
                set v_free_id = null;
                select m.message_id into v_free_id
                from rowq.message m force index (primary)
                where m.message_id = v_message_id
                for update skip locked;
                set v_is_end = false;
                if v_free_id is not null then
                    set v_later = utc_timestamp(6) + interval 500000 microsecond;
                    update rowq.delayed d force index (primary)
                    set d.due_at = v_later
                    where d.queue_id = p_queue_id
                      and d.due_at = v_due_at
                      and d.message_id = v_message_id;
                    update rowq.message m force index (primary)
                    set m.due_at = v_later
                    where m.message_id = v_message_id;
                end if;
            end if;
        else
            delete from rowq.delayed
            where queue_id = p_queue_id
              and due_at = v_due_at
              and message_id = v_message_id;
            insert into rowq.group_waiting (queue_id, group_key, message_id, lane)
            values (p_queue_id, v_group_key, v_message_id, v_lane);
            set p_joined = p_joined + 1;
        end if;
    end loop;
    close each_message;

    if v_others is not null then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt, j.due_at)) into p_messages
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]',
                due_at bigint path '$[3]'
            )
        ) j
        left join (
            select distinct o.message_id
            from json_table(
                concat('[', v_others, ']'), '$[*]' columns (message_id bigint path '$')
            ) o
        ) h on h.message_id = j.message_id
        where h.message_id is null;
    end if;
end//
delimiter ;
