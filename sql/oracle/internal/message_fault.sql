function internal_message_fault(
    p_body                in clob,
    p_body_binary         in blob,
    p_message_type        in varchar2,
    p_headers             in clob,
    p_priority            in number,
    p_delay_seconds       in number,
    p_run_at              in timestamp,
    p_dedup_key           in varchar2,
    p_max_attempts        in number,
    p_group_key           in varchar2,
    p_on_predecessor_dead in varchar2,
    p_expire_seconds      in number
)
return varchar2
is
-- routine   internal_message_fault
-- purpose   Return what is wrong with the arguments of enqueue; null means nothing.
-- promise   P15
    v_cuts  t_numbers;
    v_fault varchar2(32767);
begin
    v_fault := case
        when p_priority is null
             or p_priority not between 0 and 9
             or p_priority <> trunc(p_priority)
            then 'priority must be between 0 and 9, got ' || internal_number_text(p_priority)
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary exclude each other'
        when length(p_message_type) > 200
            then 'message_type is longer than 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at exclude each other'
        when p_delay_seconds not between 0 and 315360000
            then 'delay_seconds must be between 0 and 315360000, got '
                || internal_number_text(p_delay_seconds)
        when p_run_at > sys_extract_utc(systimestamp) + numtodsinterval(3650, 'day')
            then 'run_at must be a moment within the next ten years'
        when length(p_dedup_key) > 200
            then 'dedup_key must be 1 to 200 characters'
        -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
        when utl_raw.cast_to_raw(substr(p_dedup_key, 1, 9)) = utl_raw.cast_to_raw('schedule:')
            then 'dedup_key must not begin with schedule:, which is for schedules'
        when length(p_group_key) > 200
            then 'group_key must be 1 to 200 characters'
        when p_max_attempts not between 1 and 10000 or p_max_attempts <> trunc(p_max_attempts)
            then 'max_attempts must be between 1 and 10000, got '
                || internal_number_text(p_max_attempts)
        when utl_raw.cast_to_raw(p_on_predecessor_dead) not in (
            utl_raw.cast_to_raw('hold'), utl_raw.cast_to_raw('continue'),
            utl_raw.cast_to_raw('fail')
        )
            then 'on_predecessor_dead must be hold, continue or fail'
        when p_expire_seconds not between 0.001 and 315360000
            then 'expire_seconds must be between 0.001 and 315360000, got '
                || internal_number_text(p_expire_seconds)
    end;
    if p_headers is not null and v_fault is null then
        internal_json_fault('headers', p_headers, 'object', 20, 65536, v_cuts, v_fault);
    end if;
    return v_fault;
end internal_message_fault;
