function internal_to_base64(p_bytes in blob)
return clob
is
-- routine   internal_to_base64
-- purpose   Return bytes as base64 in one line; null stays null.
-- promise   P20
-- differs   no such helper elsewhere: other engines have a function for it
    -- 12000 bytes are a whole number of groups of three, so that only the last chunk is padded.
    c_step constant pls_integer := 12000;
    v_length pls_integer := dbms_lob.getlength(p_bytes);
    v_place  pls_integer := 1;
    v_chunk  varchar2(32767);
    v_text   clob;
begin
    if p_bytes is null then
        return null;
    end if;
    dbms_lob.createtemporary(v_text, true, dbms_lob.call);
    while v_place <= v_length loop
        v_chunk := utl_raw.cast_to_varchar2(
            utl_encode.base64_encode(dbms_lob.substr(p_bytes, c_step, v_place))
        );
        v_chunk := replace(replace(v_chunk, chr(13)), chr(10));
        dbms_lob.writeappend(v_text, length(v_chunk), v_chunk);
        v_place := v_place + c_step;
    end loop;
    return v_text;
end internal_to_base64;
