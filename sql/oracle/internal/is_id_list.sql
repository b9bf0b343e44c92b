function internal_is_id_list(p_list in clob, p_ids out nocopy rowq_ids)
return boolean
is
-- routine   internal_is_id_list
-- purpose   Read the ids in a JSON array; return false where the text is no array of at most 10000 ids, none of them null.
-- promise   P15
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
