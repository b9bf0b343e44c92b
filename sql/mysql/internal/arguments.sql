-- Arguments: what a call may pass.
--
-- A routine checks all arguments before it locks or writes, so a refused call changes nothing.
-- A *check* raises RQ711; an *error* helper returns the error or null, so that a batch can add the
-- position of the message. Bodies are compared by bytes first: counting bytes is free, and a text
-- never has more characters than bytes.
--
--   create_queue, alter_queue -> check_settings -> check_name, check_range, refuse
--   check_schedule -> check_name -> refuse
--   bind_topic, unbind_topic, enqueue, ... -> refuse
--   purge_queue, dequeue_wait, peek, ... -> check_range -> refuse
--   message_error -> is_id_list, body_error
--   batch_predecessors -> is_id_list
--   complete, retry_later, fail_now, ... -> check_ids -> is_id_list, refuse
--   maintain, reap, promote, ... -> check_batch_size -> check_range
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
-- purpose   Refuse an invalid queue name or setting; a null setting is valid.
-- errors    RQ711
    call rowq.internal_check_name('queue_name', p_queue_name);
    call rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    call rowq.internal_check_range('max_attempts', p_max_attempts, 0, 10000);
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
-- purpose   Refuse an invalid name of a queue or schedule; p_name is the parameter.
-- errors    RQ711
    if p_value is null
       or char_length(p_value) not between 1 and 100
       or p_value regexp '[[:cntrl:]]' then
        call rowq.internal_refuse(
            concat(p_name, ' must be 1 to 100 characters without control characters')
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
    -- MySQL refuses a text of more than 128 characters.
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
-- purpose   Refuse a number outside its range; null is valid.
-- errors    RQ711
    if p_value not between p_low and p_high then
        call rowq.internal_refuse(
            concat(p_name, ' must be between ', p_low, ' and ', p_high, ', got ', p_value)
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
-- purpose   Return whether a text is a JSON array of at most 10000 ids; null is valid.
    declare v_count, v_good int;
    if p_message_ids is not null then
        if json_valid(p_message_ids) and json_type(p_message_ids) = 'ARRAY' then
            set v_count = json_length(p_message_ids);
            if v_count <= 10000
               and p_message_ids regexp '\\A\\[[\\-0-9,\\x20]*\\]\\z'
               and not p_message_ids regexp '[0-9]{20}' then
                -- Fast path: only short numbers. The patterns do not depend on default_regex_flags.
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
-- purpose   Return the error if a body is too long, or null.
-- differs   only here a server setting, max_allowed_packet, limits the size of a result
    declare v_length bigint default coalesce(char_length(p_body), length(p_body_binary));
    declare v_limit bigint default cast(@@global.max_allowed_packet as signed) - 20000;

    -- Count as internal_messages_json does. 20000 bytes are enough for the other columns and for a
    -- last_error that is recorded later.
    set p_error = case
        when v_length > p_max_body_length
            then concat(
                'body must be at most ', p_max_body_length, ' characters (max_body_length), got ',
                v_length
            )
        when coalesce(length(json_quote(p_body)), length(p_body) * 6, v_length * 1.352, 0)
            + coalesce(length(json_extract(p_headers, '$')), 0) > v_limit
            then concat('body must be at most ', v_limit, ' bytes as JSON (max_allowed_packet)')
    end;
end//
delimiter ;

drop procedure if exists rowq.internal_check_ids;

delimiter //
create procedure rowq.internal_check_ids(p_message_ids longtext)
sql security definer
modifies sql data
begin
-- purpose   Refuse a text that is not a JSON array of at most 10000 ids; null is valid.
-- errors    RQ711
    declare v_is_good boolean;
    if p_message_ids is not null then
        call rowq.internal_is_id_list(p_message_ids, v_is_good);
        if not v_is_good then
            call rowq.internal_refuse(
                'message_ids must be a list of at most 10000 ids without nulls'
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
-- purpose   Refuse a maintenance batch_size outside 1 to 10000; null is the default.
-- errors    RQ711
    call rowq.internal_check_range('batch_size', p_batch_size, 1, 10000);
end//
delimiter ;
