function internal_parse_messages(
    p_messages     in clob,
    p_max_length   in number,
    p_is_published in boolean default false
)
return t_new_messages
is
-- routine   internal_parse_messages
-- purpose   Read and check the messages of enqueue_batch, or of publish_batch, where p_max_length is null.
-- promise   P15
-- errors    RQ711
    c_fault constant varchar2(100 char) :=
        'messages must be a JSON array of at most 10000 objects';
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_rest    clob := p_messages;
    v_headers t_clobs;
    v_list    json_element_t;
    v_array   json_array_t;
    v_new     t_new_messages;
    v_fault   varchar2(32767);
begin
    if not internal_is_json(p_messages) then
        internal_refuse(c_fault);
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
        internal_refuse(c_fault);
    end if;
    v_array := treat(v_list as json_array_t);
    if v_array.get_size() > 10000 then
        internal_refuse(c_fault);
    end if;

    for i in 1 .. v_array.get_size() loop
        v_new(i) := internal_parse_message(
            v_array.get(i - 1), case when v_headers.exists(i) then v_headers(i) end, v_now, i,
            p_max_length, p_is_published, v_fault
        );
        if v_fault is not null then
            internal_refuse(v_fault || ' (message ' || internal_number_text(i) || ')');
        end if;
    end loop;
    return v_new;
end internal_parse_messages;
