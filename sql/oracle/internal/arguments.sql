-- Arguments: what a call may pass.
--
-- A routine checks all arguments before it locks or writes, so a refused call changes nothing.
-- A *check* raises RQ711; an *error* helper returns the error or null, so that a batch can add the
-- position of the message. The length of a body is first taken in UTF-16 units, which is free.
--
--   create_queue, alter_queue -> check_settings -> check_name, check_whole, check_range, refuse
--   check_schedule -> check_name -> refuse
--   drop_queue, bind_topic, unbind_topic, ... -> refuse
--   purge_queue, peek, extend_lease, ... -> check_whole -> refuse, check_range
--   dequeue_wait, retry_later, next_ticks, ... -> check_range -> refuse
--   enqueue, parse_message, check_schedule, ... -> body_error
--   enqueue, parse_message, try_unblock -> is_id_list
--   complete_claim, retry_later, fail_now, ... -> check_claim -> refuse
--   complete_claim, retry_later, fail_now, ... -> read_id_list -> is_id_list, refuse
--   cancel_many -> check_header_name -> refuse
--   maintain, reap, promote, ... -> check_batch_size -> check_whole
--
-- No table.

procedure internal_check_settings(
    p_queue_name           in varchar2,
    p_lease_seconds        in number,
    p_max_attempts         in number,
    p_backoff_base_seconds in number,
    p_backoff_factor       in number,
    p_backoff_cap_seconds  in number,
    p_backoff_jitter       in number,
    p_archive_days         in number,
    p_max_body_length      in number,
    p_group_limit          in number,
    p_group_after_dead     in varchar2,
    p_group_pause_seconds  in number,
    p_max_leased           in number,
    p_rate_limit           in number,
    p_rate_seconds         in number,
    p_result_seconds       in number,
    p_history_days         in number
)
is
-- purpose   Refuse an invalid queue name or setting; a null setting is valid.
-- errors    RQ711
begin
    internal_check_name('queue_name', p_queue_name);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    internal_check_whole('max_attempts', p_max_attempts, 0, 10000);
    internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    internal_check_whole('archive_days', p_archive_days, 0, 36500);
    internal_check_whole('max_body_length', p_max_body_length, 1, 33554432);
    internal_check_whole('group_limit', p_group_limit, 1, 100);
    -- Compare bytes: NLS_COMP and NLS_SORT change how texts compare.
    if utl_raw.cast_to_raw(p_group_after_dead) not in (
        utl_raw.cast_to_raw('continue'), utl_raw.cast_to_raw('hold')
    ) then
        internal_refuse(
            'group_after_dead must be continue or hold, got ' || substr(p_group_after_dead, 1, 100)
        );
    end if;
    internal_check_range('group_pause_seconds', p_group_pause_seconds, 0, 86400);
    internal_check_whole('max_leased', p_max_leased, 0, 100000);
    internal_check_whole('rate_limit', p_rate_limit, 0, 100000);
    internal_check_range('rate_seconds', p_rate_seconds, 0.1, 86400);
    internal_check_range('result_seconds', p_result_seconds, 0, 31536000);
    internal_check_whole('history_days', p_history_days, 0, 36500);
end internal_check_settings;

procedure internal_check_name(p_name in varchar2, p_value in varchar2)
is
-- purpose   Refuse an invalid name of a queue or schedule; p_name is the parameter.
-- errors    RQ711
begin
    if p_value is null or length(p_value) > 100 or regexp_like(p_value, '[[:cntrl:]]') then
        internal_refuse(p_name || ' must be 1 to 100 characters without control characters');
    end if;
end internal_check_name;

procedure internal_refuse(p_error in varchar2)
is
-- purpose   Raise the error for an invalid argument.
-- errors    RQ711
begin
    raise_application_error(-20711, 'RQ711 invalid_argument: ' || substr(p_error, 1, 400));
end internal_refuse;

procedure internal_check_whole(
    p_name        in varchar2,
    p_value       in number,
    p_low         in number,
    p_high        in number,
    p_is_required in boolean default false
)
is
-- purpose   Refuse a number outside its range or with a fraction, or a null that is required.
-- errors    RQ711
-- differs   elsewhere the type of a parameter excludes fractions
begin
    if p_value is null and p_is_required then
        internal_refuse(
            p_name || ' must be between ' || internal_number_text(p_low) || ' and '
            || internal_number_text(p_high) || ', got null'
        );
    end if;
    internal_check_range(p_name, p_value, p_low, p_high);
    if p_value <> trunc(p_value) then
        internal_refuse(
            p_name || ' must be an integer, got ' || internal_number_text(p_value)
        );
    end if;
end internal_check_whole;

procedure internal_check_range(
    p_name  in varchar2,
    p_value in number,
    p_low   in number,
    p_high  in number
)
is
-- purpose   Refuse a number outside its range; null is valid.
-- errors    RQ711
begin
    if p_value not between p_low and p_high then
        internal_refuse(
            p_name || ' must be between ' || internal_number_text(p_low) || ' and '
            || internal_number_text(p_high) || ', got ' || internal_number_text(p_value)
        );
    end if;
end internal_check_range;

function internal_body_error(
    p_body        in clob,
    p_body_binary in blob,
    p_max_length  in number
)
return varchar2
is
-- purpose   Return the error if a body is too long, or null.
    e_never_stored exception;
    pragma exception_init(e_never_stored, -22275);
    v_length number;
begin
    v_length := coalesce(dbms_lob.getlength(p_body), dbms_lob.getlength(p_body_binary), 0);
    -- getlength counts an emoji as 2. Counting characters is slow: do it only if the body seems too
    -- long.
    if p_body is not null and v_length > p_max_length then
        v_length := internal_text_length(p_body);
    end if;
    if v_length > p_max_length then
        return 'body must be at most ' || internal_number_text(p_max_length)
            || ' characters (max_body_length), got ' || internal_number_text(v_length);
    end if;
    return null;
exception
    when e_never_stored then
        -- The caller's empty_clob() or empty_blob() is a locator without a LOB, and has no length.
        return null;
end internal_body_error;

function internal_is_id_list(p_list in clob, p_ids out nocopy rowq_ids)
return boolean
is
-- purpose   Read the ids in a JSON array; return false unless it has at most 10000 ids, no nulls.
    v_list    json_element_t;
    v_array   json_array_t;
    v_element json_element_t;
    v_id      number;
begin
    p_ids := rowq_ids();
    if not internal_is_json(p_list) then
        return false;
    end if;
    v_list := json_element_t.parse(p_list);
    if not v_list.is_array() then
        return false;
    end if;
    v_array := treat(v_list as json_array_t);
    if v_array.get_size() > 10000 then
        return false;
    end if;

    p_ids.extend(v_array.get_size());
    for i in 1 .. p_ids.count loop
        v_element := v_array.get(i - 1);
        if not v_element.is_number() then
            return false;
        end if;
        v_id := v_array.get_number(i - 1);
        -- A number beyond the range of NUMBER is read as null.
        if v_id is null or v_id <> trunc(v_id) or abs(v_id) >= 1e19 then
            return false;
        end if;
        p_ids(i) := v_id;
    end loop;
    return true;
end internal_is_id_list;

procedure internal_check_claim(p_claim_id in number)
is
-- purpose   Refuse a null claim_id.
-- errors    RQ711
begin
    if p_claim_id is null then
        internal_refuse('claim_id is required');
    end if;
end internal_check_claim;

function internal_read_id_list(p_message_ids in clob)
return rowq_ids
is
-- purpose   Return the ids in a JSON array, or null for null; refuse any other text.
-- errors    RQ711
    v_ids     rowq_ids;
    v_is_good boolean;
begin
    if p_message_ids is null then
        return null;
    end if;
    v_is_good := internal_is_id_list(p_message_ids, v_ids);
    if not v_is_good then
        internal_refuse(
            'message_ids must be a list of at most 10000 ids without nulls'
        );
    end if;
    return v_ids;
end internal_read_id_list;

procedure internal_check_header_name(p_name in varchar2)
is
-- purpose   Refuse an invalid header_name; null is valid.
-- errors    RQ711
    v_code    pls_integer;
    v_is_good boolean := true;
begin
    -- The code of a 4-byte character may exceed a pls_integer.
    if length(p_name) > 200 or lengthb(p_name) <> length(p_name) then
        v_is_good := false;
    else
        -- Compare character codes: regular expressions depend on NLS_SORT.
        for i in 1 .. coalesce(length(p_name), 0) loop
            v_code := ascii(substr(p_name, i, 1));
            v_is_good := v_is_good
                and v_code between 32 and 126
                and v_code not in (ascii('"'), ascii('\'))
                and (i > 1 or v_code <> ascii('-'));
        end loop;
    end if;
    if not v_is_good then
        internal_refuse(
            'header_name must be 1 to 200 printable ASCII characters, no ", \, leading -'
        );
    end if;
end internal_check_header_name;

procedure internal_check_batch_size(p_batch_size in number)
is
-- purpose   Refuse a maintenance batch_size outside 1 to 10000.
-- errors    RQ711
begin
    internal_check_whole('batch_size', p_batch_size, 1, 10000, p_is_required => true);
end internal_check_batch_size;
