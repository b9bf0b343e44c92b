function internal_has_header(p_headers in clob, p_name in varchar2, p_value in clob)
return boolean
is
-- routine   internal_has_header
-- purpose   Return whether headers have one of this name on their first level that is this text, or a whole number, true or false that is written so.
-- promise   P15
-- differs   no such helper elsewhere: part of cancel_many
    v_object  json_object_t;
    v_element json_element_t;
    v_number  number;
    v_text    clob;
    v_part    varchar2(32767);
    v_other   varchar2(32767);
    v_place   pls_integer := 1;
begin
    if p_headers is null then
        return false;
    end if;
    -- A path of JSON in SQL must be a literal, so only an object of JSON finds any name.
    v_object := json_object_t.parse(p_headers);
    if not v_object.has(p_name) then
        return false;
    end if;
    v_element := v_object.get(p_name);
    if v_element.is_string() then
        v_text := v_object.get_clob(p_name);
    elsif v_element.is_number() then
        v_number := v_object.get_number(p_name);
        -- A number greater than any that NUMBER holds is read as null, and one of more than 38
        -- digits is rounded.
        if v_number is null or v_number <> trunc(v_number) or abs(v_number) >= 1e38 then
            return false;
        end if;
        v_text := internal_number_text(v_number);
    elsif v_element.is_true() then
        v_text := 'true';
    elsif v_element.is_false() then
        v_text := 'false';
    else
        return false;
    end if;

    -- Compare bytes, part by part: two texts that end at the same place are equal, empty ones too.
    loop
        v_part := internal_clob_part(v_text, v_place, 8000);
        v_other := internal_clob_part(p_value, v_place, 8000);
        if v_part is null or v_other is null then
            return v_part is null and v_other is null;
        end if;
        if utl_raw.cast_to_raw(v_part) <> utl_raw.cast_to_raw(v_other) then
            return false;
        end if;
        v_place := v_place + length2(v_part);
    end loop;
end internal_has_header;
