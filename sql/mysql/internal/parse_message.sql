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
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_parse_message
-- purpose   Read and check one message of enqueue_batch, or of publish_batch, where it has a topic and no predecessors.
-- promise   P15 P20
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
        set p_fault = concat(v_key, ' cannot be read: ', left(v_value, 40));
    set p_body = null, p_body_binary = null, p_message_type = null, p_headers = null,
        p_priority = 5, p_delay_seconds = null, p_run_at = null, p_dedup_key = null,
        p_max_attempts = null, p_group_key = null, p_predecessor_ids = null, p_positions = null,
        p_on_predecessor_dead = null, p_expire_seconds = null, p_fault = null;

    if coalesce(not json_valid(p_message), true) or json_type(p_message) <> 'OBJECT' then
        set p_fault = 'a message must be a JSON object';
    else
        set v_keys = json_keys(p_message);
    end if;

    entries: while p_fault is null and v_at < json_length(v_keys) do
        set v_key = json_unquote(json_extract(v_keys, concat('$[', v_at, ']'))), v_at = v_at + 1;
        if not json_contains(c_keys, json_quote(v_key)) then
            set p_fault = concat('unknown key ', left(v_key, 60));
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
                set p_fault = 'headers must be an object';
            end if;
            set p_headers = v_value;
        elseif v_key in ('priority', 'max_attempts') then
            if v_type not in ('INTEGER', 'UNSIGNED INTEGER') or char_length(v_value) > 9 then
                set p_fault = concat(v_key, ' must be an integer, got ', left(v_value, 40));
            elseif v_key = 'priority' then
                set p_priority = v_value;
            else
                set p_max_attempts = v_value;
            end if;
        elseif v_key in ('delay_seconds', 'expire_seconds') then
            if v_type not in ('INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL') then
                set p_fault = concat(v_key, ' must be a number');
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
            set p_fault = concat(v_key, ' must be a string');
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
                set p_fault = 'body_base64 is not base64';
            end if;
        else
            call rowq.internal_parse_moment(json_unquote(v_value), p_run_at);
            if p_run_at is null then
                set p_fault = concat('run_at is no moment: ', left(json_unquote(v_value), 40));
            end if;
        end if;
    end while;

    if p_is_published and p_fault is null then
        call rowq.internal_topic_fault('topic', v_topic, false, p_fault);
        set p_message_type = coalesce(p_message_type, v_topic);
    end if;
    if p_fault is null then
        call rowq.internal_message_fault(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
            p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
            p_on_predecessor_dead, p_expire_seconds, p_max_body_length, p_fault
        );
    end if;
end//
delimiter ;
