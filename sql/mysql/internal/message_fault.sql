drop procedure if exists rowq.internal_message_fault;

delimiter //
create procedure rowq.internal_message_fault(
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
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_message_fault
-- purpose   Return what is wrong with the arguments of enqueue; null means nothing.
-- promise   P15
    declare v_is_good boolean;
    set p_fault = case
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
    if p_predecessor_ids is not null and p_fault is null then
        call rowq.internal_is_id_list(p_predecessor_ids, v_is_good);
        if not v_is_good then
            set p_fault = 'predecessor_ids must be a flat list of at most 10000 ids, no null';
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
       and p_fault is null then
        set p_fault = 'body, message_type, headers or a key has half of a surrogate pair';
    end if;
    if p_headers is not null and p_fault is null then
        call rowq.internal_json_fault('headers', p_headers, 'OBJECT', 20, 65536, p_fault);
    end if;

    -- The length has a procedure of its own, because the engine spends time even on the words of a
    -- statement that it passes over. Headers are 65536 characters at most, and JSON needs up to six
    -- bytes for one, so a body below this limit is never too long.
    if coalesce(length(p_body), length(p_body_binary), 0)
        > least(
            p_max_body_length, (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
        )
       and p_fault is null then
        call rowq.internal_body_fault(
            p_body, p_body_binary, p_headers, p_max_body_length, p_fault
        );
    end if;
end//
delimiter ;
