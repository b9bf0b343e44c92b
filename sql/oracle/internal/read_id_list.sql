function internal_read_id_list(p_message_ids in clob)
return rowq_ids
is
-- routine   internal_read_id_list
-- purpose   Return the ids in a JSON array; null stays null, anything else is refused.
-- promise   P15
-- errors    RQ711
-- differs   other engines check a list in check_ids and read it where they need it
    c_fault constant varchar2(100 char) :=
        'message_ids must be a JSON array of at most 10000 ids, none of them null';
    v_list    json_element_t;
    v_array   json_array_t;
    v_element json_element_t;
    v_id      number;
    v_ids     rowq_ids := rowq_ids();
begin
    if p_message_ids is null then
        return null;
    end if;
    if not internal_is_json(p_message_ids) then
        internal_refuse(c_fault);
    end if;
    v_list := json_element_t.parse(p_message_ids);
    if not v_list.is_array() then
        internal_refuse(c_fault);
    end if;
    v_array := treat(v_list as json_array_t);
    if v_array.get_size() > 10000 then
        internal_refuse(c_fault);
    end if;

    v_ids.extend(v_array.get_size());
    for i in 1 .. v_ids.count loop
        v_element := v_array.get(i - 1);
        if not v_element.is_number() then
            internal_refuse(c_fault);
        end if;
        v_id := v_array.get_number(i - 1);
        -- A number greater than any that NUMBER holds is read as null.
        if v_id is null or v_id <> trunc(v_id) or abs(v_id) >= 1e19 then
            internal_refuse(c_fault);
        end if;
        v_ids(i) := v_id;
    end loop;
    return v_ids;
end internal_read_id_list;
