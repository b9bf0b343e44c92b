function internal_parse_message(
    p_message      in json_element_t,
    p_headers      in clob,
    p_now          in timestamp,
    p_place        in number,
    p_max_length   in number,
    p_is_published in boolean,
    p_fault        out varchar2
)
return t_new_message
is
-- routine   internal_parse_message
-- purpose   Read and check one message of enqueue_batch, or of publish_batch, where it has a topic and no predecessors; p_fault is what is wrong with it, or null.
-- promise   P15 P20
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
            p_fault := p_key || ' must be a string';
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
            p_fault := p_key || p_meaning;
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
                p_fault := p_key || ' must be 1 to 200 characters';
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
            p_fault := p_key || ' must be a number';
            return null;
        end if;
        v_number := v_object.get_number(p_key);
        if v_number is null then
            -- The number is greater than any that NUMBER holds.
            p_fault := p_key || ' is out of range';
        end if;
        return v_number;
    end number_of;
begin
    p_fault := null;
    if not p_message.is_object() then
        p_fault := 'a message must be a JSON object';
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
            p_fault := 'body_base64 is not base64';
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
        p_fault := coalesce(p_fault, internal_topic_fault('topic', v_topic, false));
        v_type := coalesce(v_type, v_topic);
    else
        v_ids := list_of(
            'predecessor_ids', ' must be a flat list of at most 10000 ids, no null'
        );
        v_places := list_of('predecessor_positions', c_places);
        v_on_dead := text_of('on_predecessor_dead');
        if v_on_dead is null and v_object.has('on_predecessor_dead') then
            if v_object.get('on_predecessor_dead').is_string() then
                p_fault := 'on_predecessor_dead must be hold, continue or fail';
            end if;
        end if;
    end if;
    v_moment := text_of('run_at');
    v_run_at := internal_parse_moment(v_moment);
    if v_moment is not null and v_run_at is null then
        p_fault := 'run_at is no moment: ' || substr(v_moment, 1, 40);
    end if;
    v_numbers(1) := number_of('priority', 5);
    v_numbers(2) := number_of('delay_seconds');
    v_numbers(3) := number_of('max_attempts');
    v_numbers(4) := number_of('expire_seconds');

    if v_known < v_object.get_size() then
        p_fault := 'unknown key';
        begin
            v_keys := v_object.get_keys();
            for i in 1 .. v_keys.count loop
                if instr(c_keys, '|' || v_keys(i) || '|') = 0 then
                    p_fault := 'unknown key ' || substr(v_keys(i), 1, 60);
                end if;
            end loop;
        exception
            when value_error then
                -- ORA-06502: json_key_list holds no key of more than 4000 bytes.
                p_fault := 'unknown key of more than 4000 bytes';
        end;
    end if;
    if v_places is not null and p_fault is null then
        for i in 1 .. v_places.count loop
            if v_places(i) not between 1 and p_place - 1 then
                p_fault := 'predecessor_positions' || c_places;
            end if;
        end loop;
        if v_ids is null then
            v_ids := rowq_ids();
        end if;
    end if;
    p_fault := coalesce(
        p_fault,
        internal_message_fault(
            v_body, v_bytes, v_type, v_headers, v_numbers(1), v_numbers(2), v_run_at, v_key,
            v_numbers(3), v_group, v_on_dead, v_numbers(4)
        ),
        internal_body_fault(v_body, v_bytes, p_max_length)
    );
    if p_fault is null then
        v_new := internal_new_message(
            p_now, p_place, v_body, v_bytes, v_type, v_headers, v_numbers(1), v_numbers(2),
            v_run_at, v_key, v_numbers(3), v_group, v_ids, v_on_dead, v_numbers(4)
        );
        v_new.predecessor_positions := v_places;
        v_new.topic := v_topic;
    end if;
    return v_new;
end internal_parse_message;
