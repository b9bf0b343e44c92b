function internal_from_base64(p_text in clob)
return blob
is
-- routine   internal_from_base64
-- purpose   Return the bytes of a base64 text, line breaks allowed; null when it is none.
-- promise   P15 P20
-- differs   no such helper elsewhere: other engines have a function for it
    -- 8000 letters are a whole number of groups of four, and few enough bytes even where a
    -- character takes four.
    c_step constant pls_integer := 8000;
    c_alphabet constant varchar2(64 char) :=
        'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    v_text   clob := replace(replace(p_text, chr(10)), chr(13));
    v_length pls_integer := coalesce(dbms_lob.getlength(v_text), 0);
    v_bytes  blob;
    v_chunk  varchar2(32767);
    v_digits varchar2(32767);
    v_raw    raw(32767);
    v_place  pls_integer := 1;
begin
    if mod(v_length, 4) <> 0 then
        return null;
    end if;
    dbms_lob.createtemporary(v_bytes, true, dbms_lob.call);
    while v_place <= v_length loop
        v_chunk := internal_clob_part(v_text, v_place, c_step);
        v_place := v_place + length2(v_chunk);
        v_digits := case when v_place > v_length then rtrim(v_chunk, '=') else v_chunk end;
        -- Use ltrim and not a regular expression, whose ranges follow the session's NLS_SORT.
        if ltrim(v_digits, c_alphabet) is not null
           or coalesce(length(v_digits), 0) < length(v_chunk) - 2
        then
            return null;
        end if;
        v_raw := utl_encode.base64_decode(utl_raw.cast_to_raw(v_chunk));
        dbms_lob.writeappend(v_bytes, utl_raw.length(v_raw), v_raw);
    end loop;
    return v_bytes;
end internal_from_base64;
