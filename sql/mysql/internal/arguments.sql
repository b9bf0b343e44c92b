-- Arguments: what a call may pass.
--
-- A routine checks all of its arguments before it locks or writes anything, so a refused call
-- changes nothing. A *check* raises RQ711; an *error* helper returns what is wrong, or null, so
-- that a batch can name the message at fault. Bodies are compared by bytes first: counting bytes
-- costs nothing, and no text has more characters than bytes.
--
--   create_queue, alter_queue -> check_settings -> check_name, check_range, refuse
--   check_schedule -> check_name -> refuse
--   bind_topic, unbind_topic, enqueue, ... -> refuse
--   purge_queue, dequeue_wait, peek, ... -> check_range -> refuse
--   enqueue, publish, check_schedule, ... -> message_error -> is_id_list, body_error
--   batch_predecessors -> is_id_list
--   complete, retry_later, fail_now, ... -> check_ids -> is_id_list, refuse
--   maintain, reap, promote, ... -> check_batch_size -> check_range
--   store_batch, check_unbound -> parse_message -> message_error
--
-- No table.

drop procedure if exists rowq.internal_check_settings;

delimiter //
create procedure rowq.internal_check_settings(
    p_queue_name longtext,
    p_lease_seconds int,
    p_max_attempts int,
    p_backoff_base_seconds double,
    p_backoff_factor double,
    p_backoff_cap_seconds double,
    p_backoff_jitter double,
    p_archive_days int,
    p_max_body_length int,
    p_group_limit int,
    p_group_after_dead longtext,
    p_group_pause_seconds double,
    p_max_leased int,
    p_rate_limit int,
    p_rate_seconds double,
    p_result_seconds double,
    p_history_days int
)
sql security definer
modifies sql data
begin
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- errors    RQ711
    call rowq.internal_check_name('queue_name', p_queue_name);
    call rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    call rowq.internal_check_range('max_attempts', p_max_attempts, 1, 10000);
    call rowq.internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    call rowq.internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    call rowq.internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    call rowq.internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    call rowq.internal_check_range('archive_days', p_archive_days, 0, 36500);
    call rowq.internal_check_range('max_body_length', p_max_body_length, 1, 33554432);
    call rowq.internal_check_range('group_limit', p_group_limit, 1, 100);
    call rowq.internal_check_range('group_pause_seconds', p_group_pause_seconds, 0, 86400);
    if cast(p_group_after_dead as binary) not in ('continue', 'hold') then
        call rowq.internal_refuse(
            concat(
                'group_after_dead must be continue or hold, got ', left(p_group_after_dead, 40)
            )
        );
    end if;
    call rowq.internal_check_range('max_leased', p_max_leased, 0, 100000);
    call rowq.internal_check_range('rate_limit', p_rate_limit, 0, 100000);
    call rowq.internal_check_range('rate_seconds', p_rate_seconds, 0.1, 86400);
    call rowq.internal_check_range('result_seconds', p_result_seconds, 0, 31536000);
    call rowq.internal_check_range('history_days', p_history_days, 0, 36500);
end//
delimiter ;

drop procedure if exists rowq.internal_check_name;

delimiter //
create procedure rowq.internal_check_name(p_name varchar(64), p_value longtext)
sql security definer
modifies sql data
begin
-- purpose   Refuse a bad name of a queue or a schedule; p_name is that of the parameter.
-- errors    RQ711
    if p_value is null
       or char_length(p_value) not between 1 and 100
       or p_value regexp '[[:cntrl:]]' then
        call rowq.internal_refuse(
            concat(p_name, ' must be 1 to 100 characters, none of them control')
        );
    end if;
    call rowq.internal_check_text(p_name, p_value);
end//
delimiter ;

drop procedure if exists rowq.internal_refuse;

delimiter //
create procedure rowq.internal_refuse(p_error longtext)
sql security definer
modifies sql data
begin
-- purpose   Raise the error for an invalid argument.
-- errors    RQ711
-- differs   no such helper elsewhere: other engines raise with an expression
    -- Cut the text, because MySQL refuses one of more than 128 characters.
    declare v_text varchar(128) default left(concat('RQ711 invalid_argument: ', p_error), 128);
    signal sqlstate '45711' set message_text = v_text;
end//
delimiter ;

drop procedure if exists rowq.internal_check_range;

delimiter //
create procedure rowq.internal_check_range(
    p_name longtext,
    p_value double,
    p_low double,
    p_high double
)
sql security definer
modifies sql data
begin
-- purpose   Refuse a number outside its range; null passes.
-- errors    RQ711
    if p_value not between p_low and p_high then
        call rowq.internal_refuse(
            concat(p_name, ' must be between ', p_low, ' and ', p_high, ', got ', p_value)
        );
    end if;
end//
delimiter ;

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
    p_max_body_length int,
    out p_error varchar(120)
)
sql security definer
modifies sql data
begin
-- purpose   Return what is wrong with the arguments of enqueue; null means nothing.
    declare v_is_good boolean;
    set p_error = case
        when p_priority not between 0 and 9
            then concat('priority must be between 0 and 9, got ', p_priority)
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary exclude each other'
        when char_length(p_message_type) > 200
            then 'message_type is longer than 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at exclude each other'
        when p_delay_seconds not between 0 and 315360000
            then concat('delay_seconds must be between 0 and 315360000, got ', p_delay_seconds)
        when p_run_at > utc_timestamp(6) + interval 3650 day
            then 'run_at must be a moment within the next ten years'
        when char_length(p_dedup_key) not between 1 and 200
            then 'dedup_key must be 1 to 200 characters'
        when locate('schedule:', cast(p_dedup_key as binary)) = 1
            then 'dedup_key must not begin with schedule:, which is for schedules'
        when char_length(p_group_key) not between 1 and 200
            then 'group_key must be 1 to 200 characters'
        when p_max_attempts not between 1 and 10000
            then concat('max_attempts must be between 1 and 10000, got ', p_max_attempts)
        when not coalesce(
                p_on_predecessor_dead in ('hold', 'continue', 'fail'),
                p_on_predecessor_dead is null
            )
            then 'on_predecessor_dead must be hold, continue or fail'
        when p_expire_seconds not between 0.001 and 315360000
            then concat(
                'expire_seconds must be between 0.001 and 315360000, got ', p_expire_seconds
            )
    end;
    if p_predecessor_ids is not null and p_error is null then
        call rowq.internal_is_id_list(p_predecessor_ids, v_is_good);
        if not v_is_good then
            set p_error = 'predecessor_ids must be a flat list of at most 10000 ids, no null';
        end if;
    end if;
    -- This is the check of internal_check_text. Where no byte is ED, the engine skips the
    -- conversion.
    if locate(
            x'ED', cast(
                concat_ws('', p_body, p_message_type, p_headers, p_dedup_key, p_group_key) as binary
            )
        ) > 0
       and convert(
               convert(
                   concat_ws('', p_body, p_message_type, p_headers, p_dedup_key, p_group_key)
                   using utf16
               )
               using utf8mb4
           ) <> concat_ws('', p_body, p_message_type, p_headers, p_dedup_key, p_group_key)
       and p_error is null then
        set p_error = 'body, message_type, headers or a key has half of a surrogate pair';
    end if;
    if p_headers is not null and p_error is null then
        call rowq.internal_json_error('headers', p_headers, 'OBJECT', 20, 65536, p_error);
    end if;

    -- The length has a procedure of its own, because the engine spends time even on the words of a
    -- statement that it passes over. Headers are 65536 characters at most, and JSON needs up to six
    -- bytes for one, so a body below this limit is never too long.
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

drop procedure if exists rowq.internal_is_id_list;

delimiter //
create procedure rowq.internal_is_id_list(p_message_ids longtext, out p_is_good boolean)
sql security definer
modifies sql data
begin
-- purpose   Return whether a text is a JSON array of ids, not too long and without null; a null text passes.
    declare v_count, v_good int;
    if p_message_ids is not null then
        if json_valid(p_message_ids) and json_type(p_message_ids) = 'ARRAY' then
            set v_count = json_length(p_message_ids);
            if v_count <= 10000
               and p_message_ids regexp '\\A\\[[\\-0-9,\\x20]*\\]\\z'
               and not p_message_ids regexp '[0-9]{20}' then
                -- Most lists have nothing but short numbers, so that this pattern is enough. The
                -- patterns mean the same whatever default_regex_flags says.
                set v_good = v_count;
            elseif v_count <= 10000 then
                select count(*) into v_good
                from json_table(
                    p_message_ids, '$[*]' columns (id varchar(40) path '$')
                ) a
                where a.id regexp '\\A-?[0-9]{1,19}\\z';
            end if;
        end if;
    end if;
    set p_is_good = p_message_ids is null or coalesce(v_good = v_count, false);
end//
delimiter ;

drop procedure if exists rowq.internal_body_error;

delimiter //
create procedure rowq.internal_body_error(
    p_body longtext,
    p_body_binary longblob,
    p_headers longtext,
    p_max_body_length int,
    out p_error varchar(120)
)
sql security definer
modifies sql data
begin
-- purpose   Return what is wrong with the length of a body; null means nothing.
-- differs   elsewhere the most octets of an answer are no setting of the server
    declare v_length bigint default coalesce(char_length(p_body), length(p_body_binary));
    declare v_limit bigint default cast(@@global.max_allowed_packet as signed) - 20000;

    -- Count as internal_messages_json does. 20000 bytes are enough for everything beside body and
    -- headers, and for an error that is noted later.
    set p_error = case
        when v_length > p_max_body_length
            then concat(
                'body is ', v_length, ' long, and the queue takes ', p_max_body_length,
                ': max_body_length'
            )
        when coalesce(length(json_quote(p_body)), length(p_body) * 6, v_length * 1.352, 0)
            + coalesce(length(json_extract(p_headers, '$')), 0) > v_limit
            then concat('as JSON it is longer than max_allowed_packet less 20000, ', v_limit)
    end;
end//
delimiter ;

drop procedure if exists rowq.internal_check_ids;

delimiter //
create procedure rowq.internal_check_ids(p_message_ids longtext)
sql security definer
modifies sql data
begin
-- purpose   Refuse a list of messages that is no JSON array of ids, or too long; null passes.
-- errors    RQ711
    declare v_is_good boolean;
    if p_message_ids is not null then
        call rowq.internal_is_id_list(p_message_ids, v_is_good);
        if not v_is_good then
            call rowq.internal_refuse(
                'message_ids must be a JSON array of at most 10000 ids, none of them null'
            );
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_check_batch_size;

delimiter //
create procedure rowq.internal_check_batch_size(p_batch_size int)
sql security definer
modifies sql data
begin
-- purpose   Refuse a housekeeping batch_size outside 1 to 10000; null passes and means the default.
-- errors    RQ711
    call rowq.internal_check_range('batch_size', p_batch_size, 1, 10000);
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
    out p_error varchar(120)
)
sql security definer
modifies sql data
begin
-- purpose   Read and check one message of enqueue_batch, or of publish_batch, where it has a topic and no predecessors.
    declare c_keys longtext default if(
        p_is_published,
        '["body", "body_base64", "message_type", "headers", "priority", "delay_seconds", "run_at",
            "dedup_key", "max_attempts", "group_key", "topic", "expire_seconds"]',
        '["body", "body_base64", "message_type", "headers", "priority", "delay_seconds", "run_at",
            "dedup_key", "max_attempts", "group_key", "predecessor_ids", "predecessor_positions",
            "on_predecessor_dead", "expire_seconds"]'
    );
    declare v_keys, v_key, v_value, v_type, v_topic longtext;
    declare v_at int default 0;
    declare exit handler for sqlexception
        set p_error = concat(v_key, ' cannot be read: ', left(v_value, 40));
    set p_body = null, p_body_binary = null, p_message_type = null, p_headers = null,
        p_priority = 5, p_delay_seconds = null, p_run_at = null, p_dedup_key = null,
        p_max_attempts = null, p_group_key = null, p_predecessor_ids = null, p_positions = null,
        p_on_predecessor_dead = null, p_expire_seconds = null, p_error = null;

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
                set p_error = 'headers must be an object';
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
                set p_error = concat(v_key, ' must be a number');
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
            set p_error = concat(v_key, ' must be a string');
        elseif v_key = 'message_type' then
            set p_message_type = json_unquote(v_value);
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
                set p_error = 'body_base64 is not base64';
            end if;
        else
            call rowq.internal_parse_timestamp(json_unquote(v_value), p_run_at);
            if p_run_at is null then
                set p_error = concat('run_at is no moment: ', left(json_unquote(v_value), 40));
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
            p_on_predecessor_dead, p_expire_seconds, p_max_body_length, p_error
        );
    end if;
end//
delimiter ;
