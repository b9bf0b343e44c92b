-- Arguments: what a call may pass.
--
-- A routine checks all of its arguments before it locks or writes anything, so a refused call
-- changes nothing. A *check* raises RQ711; an *error* helper returns what is wrong, or null, so
-- that a batch can name the message at fault. Bodies are compared by bytes first: counting bytes
-- costs nothing, and no text has more characters than bytes.
--
--   create_queue, alter_queue -> check_settings -> check_name, check_whole, check_range, refuse
--   check_schedule -> check_name -> refuse
--   drop_queue, bind_topic, unbind_topic, ... -> refuse
--   purge_queue, peek, extend_lease, ... -> check_whole -> refuse, check_range
--   dequeue_wait, retry_later, next_ticks, ... -> check_range -> refuse
--   enqueue, publish, check_schedule, ... -> body_error
--   enqueue, try_unblock -> is_id_list
--   enqueue, publish, check_schedule -> message_error
--   enqueue, publish, enqueue_tick -> new_message
--   enqueue_batch, publish_batch -> parse_messages -> refuse, parse_message
--   parse_message -> is_id_list, message_error, body_error, new_message
--   complete, retry_later, fail_now, ... -> check_claim -> refuse
--   complete, retry_later, fail_now, ... -> read_id_list -> is_id_list, refuse
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
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- errors    RQ711
begin
    internal_check_name('queue_name', p_queue_name);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    internal_check_whole('max_attempts', p_max_attempts, 1, 10000);
    internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    internal_check_whole('archive_days', p_archive_days, 0, 36500);
    internal_check_whole('max_body_length', p_max_body_length, 1, 33554432);
    internal_check_whole('group_limit', p_group_limit, 1, 100);
    -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
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
-- purpose   Refuse a bad name of a queue or a schedule; p_name is that of the parameter.
-- errors    RQ711
begin
    if p_value is null or length(p_value) > 100 or regexp_like(p_value, '[[:cntrl:]]') then
        internal_refuse(p_name || ' must be 1 to 100 characters, none of them control');
    end if;
end internal_check_name;

procedure internal_refuse(p_error in varchar2)
is
-- purpose   Raise the error for an invalid argument.
-- errors    RQ711
-- differs   no such helper elsewhere: other engines raise with an expression
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
-- purpose   Refuse a number outside its range, or with a fraction, or missing where it is required.
-- errors    RQ711
-- differs   elsewhere the type of a parameter keeps fractions out
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
            p_name || ' must be a whole number, got ' || internal_number_text(p_value)
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
-- purpose   Refuse a number outside its range; null passes.
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
-- purpose   Return what is wrong with the length of a body; null means nothing.
    e_never_stored exception;
    pragma exception_init(e_never_stored, -22275);
    v_length number;
begin
    v_length := coalesce(dbms_lob.getlength(p_body), dbms_lob.getlength(p_body_binary), 0);
    -- getlength counts an emoji as two. Counting it as one takes long, so do it only where the body
    -- seems too long.
    if p_body is not null and v_length > p_max_length then
        v_length := internal_text_length(p_body);
    end if;
    if v_length > p_max_length then
        return 'body is ' || internal_number_text(v_length) || ' long, and the queue takes '
            || internal_number_text(p_max_length) || ': max_body_length';
    end if;
    return null;
exception
    when e_never_stored then
        -- An empty_clob() or empty_blob() of the caller's is a locator of no LOB: it has no length.
        return null;
end internal_body_error;

function internal_is_id_list(p_list in clob, p_ids out nocopy rowq_ids)
return boolean
is
-- purpose   Read the ids in a JSON array; return false where the text is no array of at most 10000 ids, none of them null.
-- differs   other engines read the list where they need it
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
        -- A number greater than any that NUMBER holds is read as null.
        if v_id is null or v_id <> trunc(v_id) or abs(v_id) >= 1e19 then
            return false;
        end if;
        p_ids(i) := v_id;
    end loop;
    return true;
end internal_is_id_list;

function internal_message_error(
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
-- purpose   Return what is wrong with the arguments of enqueue; null means nothing.
    v_cuts  t_numbers;
    v_error varchar2(32767);
begin
    v_error := case
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
    if p_headers is not null and v_error is null then
        internal_json_error('headers', p_headers, 'object', 20, 65536, v_cuts, v_error);
    end if;
    return v_error;
end internal_message_error;

function internal_new_message(
    p_now                 in timestamp,
    p_place               in number,
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
    p_predecessor_ids     in rowq_ids,
    p_on_predecessor_dead in varchar2,
    p_expire_seconds      in number
)
return t_new_message
is
-- purpose   Return a message as it will be stored, from arguments that are already checked.
-- differs   no such helper elsewhere: part of store
    v_new t_new_message;
begin
    v_new.body := p_body;
    v_new.body_binary := p_body_binary;
    v_new.message_type := p_message_type;
    v_new.headers := p_headers;
    v_new.lane := p_priority * 2 + 1;
    v_new.seq := internal_microseconds(p_now) + p_place;
    v_new.enqueued_at := p_now + numtodsinterval(p_place / 1000000, 'second');
    v_new.due_at := coalesce(p_run_at, p_now + numtodsinterval(p_delay_seconds, 'second'));
    if v_new.due_at <= p_now then
        v_new.due_at := null;
    end if;
    v_new.expires_at := v_new.enqueued_at + numtodsinterval(p_expire_seconds, 'second');
    v_new.dedup_key := p_dedup_key;
    v_new.max_attempts := p_max_attempts;
    v_new.group_key := p_group_key;
    v_new.place := p_place;
    v_new.predecessor_ids := p_predecessor_ids;
    v_new.on_predecessor_dead := p_on_predecessor_dead;
    return v_new;
end internal_new_message;

function internal_parse_messages(
    p_messages     in clob,
    p_max_length   in number,
    p_is_published in boolean default false
)
return t_new_messages
is
-- purpose   Read and check the messages of enqueue_batch, or of publish_batch, where p_max_length is null.
-- errors    RQ711
    c_error constant varchar2(100 char) :=
        'messages must be a JSON array of at most 10000 objects';
    v_now     constant timestamp(6) := sys_extract_utc(systimestamp);
    v_rest    clob := p_messages;
    v_headers t_clobs;
    v_list    json_element_t;
    v_array   json_array_t;
    v_new     t_new_messages;
    v_error   varchar2(32767);
begin
    if not internal_is_json(p_messages) then
        internal_refuse(c_error);
    end if;
    -- A JSON object would round a number of many digits or with an exponent, so cut the headers out
    -- as text. That looks at each character, so do it only where there are headers. The pattern
    -- lists the digits, because a range would follow the session's NLS_SORT, as instr does.
    if dbms_lob.instr(p_messages, '"headers"') > 0
       and regexp_like(p_messages, '[[:space:],:[]-?[0123456789.]+[eE]|[0123456789.]{38}')
    then
        internal_cut_headers(p_messages, v_headers, v_rest);
    end if;
    v_list := json_element_t.parse(v_rest);
    if not v_list.is_array() then
        internal_refuse(c_error);
    end if;
    v_array := treat(v_list as json_array_t);
    if v_array.get_size() > 10000 then
        internal_refuse(c_error);
    end if;

    for i in 1 .. v_array.get_size() loop
        v_new(i) := internal_parse_message(
            v_array.get(i - 1), case when v_headers.exists(i) then v_headers(i) end, v_now, i,
            p_max_length, p_is_published, v_error
        );
        if v_error is not null then
            internal_refuse(v_error || ' (message ' || internal_number_text(i) || ')');
        end if;
    end loop;
    return v_new;
end internal_parse_messages;

function internal_parse_message(
    p_message      in json_element_t,
    p_headers      in clob,
    p_now          in timestamp,
    p_place        in number,
    p_max_length   in number,
    p_is_published in boolean,
    p_error        out varchar2
)
return t_new_message
is
-- purpose   Read and check one message of enqueue_batch, or of publish_batch, where it has a topic and no predecessors; p_error is what is wrong with it, or null.
    c_keys constant varchar2(300 char) := '|body|body_base64|message_type|headers|priority'
        || '|delay_seconds|run_at|dedup_key|max_attempts|group_key|expire_seconds|'
        || case
            when p_is_published then 'topic|'
            else 'predecessor_ids|predecessor_positions|on_predecessor_dead|'
        end;
    c_places constant varchar2(100 char) :=
        ' must be a flat list of places before the message''s own';
    v_object  json_object_t;
    v_keys    json_key_list;
    v_new     t_new_message;
    v_known   pls_integer := 0;
    v_body    clob;
    v_headers clob;
    v_bytes   blob;
    v_type    varchar2(32767);
    v_topic   varchar2(32767);
    v_key     varchar2(32767);
    v_group   varchar2(32767);
    v_on_dead varchar2(32767);
    v_ids     rowq_ids;
    v_places  rowq_ids;
    v_moment  varchar2(32767);
    v_numbers t_numbers;
    v_run_at  timestamp(6);

    -- has says whether a key is there and not null. It counts each key that is there as known.
    function has(p_key in varchar2)
    return boolean
    is
    begin
        if not v_object.has(p_key) then
            return false;
        end if;
        v_known := v_known + 1;
        return not v_object.get(p_key).is_null();
    end has;

    function text_of(p_key in varchar2)
    return varchar2
    is
    begin
        if not has(p_key) then
            return null;
        end if;
        if not v_object.get(p_key).is_string() then
            p_error := p_key || ' must be a string';
            return null;
        end if;
        -- No valid text here is longer than 200 characters, so 201 are enough to refuse it.
        return substr(internal_clob_part(v_object.get_clob(p_key), 1, 402), 1, 201);
    end text_of;

    function list_of(p_key in varchar2, p_meaning in varchar2)
    return rowq_ids
    is
        v_list    rowq_ids;
        v_is_good boolean;
    begin
        if not has(p_key) then
            return null;
        end if;
        v_is_good := internal_is_id_list(v_object.get(p_key).to_clob(), v_list);
        if not v_is_good then
            p_error := p_key || p_meaning;
        end if;
        return v_list;
    end list_of;

    -- key_of refuses an empty text, which Oracle takes as null.
    function key_of(p_key in varchar2)
    return varchar2
    is
        v_text varchar2(32767) := text_of(p_key);
    begin
        if v_text is null and v_object.has(p_key) then
            if v_object.get(p_key).is_string() then
                p_error := p_key || ' must be 1 to 200 characters';
            end if;
        end if;
        return v_text;
    end key_of;

    function number_of(p_key in varchar2, p_default in number default null)
    return number
    is
        v_number number;
    begin
        if not has(p_key) then
            return p_default;
        end if;
        if not v_object.get(p_key).is_number() then
            p_error := p_key || ' must be a number';
            return null;
        end if;
        v_number := v_object.get_number(p_key);
        if v_number is null then
            -- The number is greater than any that NUMBER holds.
            p_error := p_key || ' is out of range';
        end if;
        return v_number;
    end number_of;
begin
    p_error := null;
    if not p_message.is_object() then
        p_error := 'a message must be a JSON object';
        return v_new;
    end if;
    v_object := treat(p_message as json_object_t);

    if has('body') then
        -- A value that is no string is kept as JSON text. An empty text is not a missing one, but
        -- Oracle takes '' as null: keep an empty CLOB.
        v_body := case
            when v_object.get('body').is_string() then v_object.get_clob('body')
            else v_object.get('body').to_clob()
        end;
        v_body := coalesce(v_body, empty_clob());
    end if;
    if has('body_base64') then
        if v_object.get('body_base64').is_string() then
            v_bytes := internal_from_base64(v_object.get_clob('body_base64'));
        end if;
        if v_bytes is null then
            p_error := 'body_base64 is not base64';
        end if;
    end if;
    if has('headers') then
        -- p_headers is given if the headers were cut out of the message (internal_cut_headers).
        v_headers := coalesce(p_headers, v_object.get('headers').to_clob());
    end if;
    v_type := text_of('message_type');
    v_key := key_of('dedup_key');
    v_group := key_of('group_key');
    if p_is_published then
        v_topic := text_of('topic');
        p_error := coalesce(p_error, internal_topic_error('topic', v_topic, false));
        v_type := coalesce(v_type, v_topic);
    else
        v_ids := list_of(
            'predecessor_ids', ' must be a flat list of at most 10000 ids, no null'
        );
        v_places := list_of('predecessor_positions', c_places);
        v_on_dead := text_of('on_predecessor_dead');
        if v_on_dead is null and v_object.has('on_predecessor_dead') then
            if v_object.get('on_predecessor_dead').is_string() then
                p_error := 'on_predecessor_dead must be hold, continue or fail';
            end if;
        end if;
    end if;
    v_moment := text_of('run_at');
    v_run_at := internal_parse_timestamp(v_moment);
    if v_moment is not null and v_run_at is null then
        p_error := 'run_at is no moment: ' || substr(v_moment, 1, 40);
    end if;
    v_numbers(1) := number_of('priority', 5);
    v_numbers(2) := number_of('delay_seconds');
    v_numbers(3) := number_of('max_attempts');
    v_numbers(4) := number_of('expire_seconds');

    if v_known < v_object.get_size() then
        p_error := 'unknown key';
        begin
            v_keys := v_object.get_keys();
            for i in 1 .. v_keys.count loop
                if instr(c_keys, '|' || v_keys(i) || '|') = 0 then
                    p_error := 'unknown key ' || substr(v_keys(i), 1, 60);
                end if;
            end loop;
        exception
            when value_error then
                -- ORA-06502: json_key_list holds no key of more than 4000 bytes.
                p_error := 'unknown key of more than 4000 bytes';
        end;
    end if;
    if v_places is not null and p_error is null then
        for i in 1 .. v_places.count loop
            if v_places(i) not between 1 and p_place - 1 then
                p_error := 'predecessor_positions' || c_places;
            end if;
        end loop;
        if v_ids is null then
            v_ids := rowq_ids();
        end if;
    end if;
    p_error := coalesce(
        p_error,
        internal_message_error(
            v_body, v_bytes, v_type, v_headers, v_numbers(1), v_numbers(2), v_run_at, v_key,
            v_numbers(3), v_group, v_on_dead, v_numbers(4)
        ),
        internal_body_error(v_body, v_bytes, p_max_length)
    );
    if p_error is null then
        v_new := internal_new_message(
            p_now, p_place, v_body, v_bytes, v_type, v_headers, v_numbers(1), v_numbers(2),
            v_run_at, v_key, v_numbers(3), v_group, v_ids, v_on_dead, v_numbers(4)
        );
        v_new.predecessor_positions := v_places;
        v_new.topic := v_topic;
    end if;
    return v_new;
end internal_parse_message;

procedure internal_check_claim(p_claim_id in number)
is
-- purpose   Refuse a claim_id that is missing.
-- errors    RQ711
-- differs   no such helper elsewhere: part of the routines
begin
    if p_claim_id is null then
        internal_refuse('claim_id is missing');
    end if;
end internal_check_claim;

function internal_read_id_list(p_message_ids in clob)
return rowq_ids
is
-- purpose   Return the ids in a JSON array; null stays null, anything else is refused.
-- errors    RQ711
-- differs   other engines check a list in check_ids and read it where they need it
    v_ids     rowq_ids;
    v_is_good boolean;
begin
    if p_message_ids is null then
        return null;
    end if;
    v_is_good := internal_is_id_list(p_message_ids, v_ids);
    if not v_is_good then
        internal_refuse(
            'message_ids must be a JSON array of at most 10000 ids, none of them null'
        );
    end if;
    return v_ids;
end internal_read_id_list;

procedure internal_check_header_name(p_name in varchar2)
is
-- purpose   Refuse a bad name of a header to look for; null passes.
-- errors    RQ711
-- differs   no such helper elsewhere: part of cancel_many
    v_code    pls_integer;
    v_is_good boolean := true;
begin
    -- The code of a character of four bytes may be greater than any integer of PL/SQL.
    if length(p_name) > 200 or lengthb(p_name) <> length(p_name) then
        v_is_good := false;
    else
        -- Compare the codes of characters, because regular expressions follow the session's
        -- NLS_SORT.
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
            'header_name must have 1 to 200 printable ASCII characters, no ", \ or leading -'
        );
    end if;
end internal_check_header_name;

procedure internal_check_batch_size(p_batch_size in number)
is
-- purpose   Refuse a housekeeping batch_size outside 1 to 10000.
-- errors    RQ711
begin
    internal_check_whole('batch_size', p_batch_size, 1, 10000, p_is_required => true);
end internal_check_batch_size;
