function internal_header_limit(p_headers in clob)
return varchar2
is
-- routine   internal_header_limit
-- purpose   Return what in valid JSON headers not every JSON reader would accept, or null.
-- promise   P15
-- differs   no such helper elsewhere: part of header_fault
    c_quote constant pls_integer := ascii('"');
    v_part     varchar2(32767);
    v_char     varchar2(4 char);
    v_code     pls_integer;
    v_place    pls_integer := 1;
    v_length   pls_integer := 0;
    v_depth    pls_integer := 0;
    v_digits   pls_integer := 0;
    v_exponent pls_integer;
    v_in_text  boolean := false;
    v_escaped  boolean := false;
begin
    -- Compare the codes of characters, because a session can have its own order (NLS_SORT).
    loop
        -- Read short parts, because substr counts from the start of a part each time.
        v_part := internal_clob_part(p_headers, v_place, 500);
        exit when v_part is null;
        v_place := v_place + length2(v_part);
        v_length := v_length + length(v_part);
        if v_length > 65536 then
            return 'headers are longer than 65536 characters';
        end if;
        for i in 1 .. length(v_part) loop
            -- For an emoji, ascii returns its four bytes as a number, too large for a pls_integer.
            v_char := substr(v_part, i, 1);
            v_code := case when lengthb(v_char) = 1 then ascii(v_char) else 128 end;
            if v_depth = 0 and v_code not in (9, 10, 13, 32, ascii('{')) then
                return 'headers must be a JSON object';
            end if;
            if v_in_text then
                v_in_text := v_escaped or v_code <> c_quote;
                v_escaped := v_code = ascii('\') and not v_escaped;
            elsif v_code between ascii('0') and ascii('9') then
                if v_exponent is null then
                    v_digits := v_digits + 1;
                else
                    v_exponent := v_exponent * 10 + v_code - ascii('0');
                end if;
                if v_digits > 100 or v_exponent > 200 then
                    return 'headers have a number of too many digits';
                end if;
            elsif v_code in (ascii('e'), ascii('E')) and v_digits > 0 then
                v_exponent := 0;
            elsif v_code not in (ascii('.'), ascii('+'), ascii('-')) then
                v_digits := 0;
                v_exponent := null;
                v_in_text := v_code = c_quote;
                v_depth := v_depth + case
                    when v_code in (ascii('{'), ascii('[')) then 1
                    when v_code in (ascii('}'), ascii(']')) then -1
                    else 0
                end;
            end if;
            -- A value inside counts as one level deeper. The codes here are blanks, commas, colons
            -- and brackets, which are no values.
            if v_depth > 20
               or v_depth = 20 and v_code not in (9, 10, 13, 32, 44, 58, 91, 93, 123, 125) then
                return 'headers are nested more than 20 deep';
            end if;
        end loop;
    end loop;
    return null;
end internal_header_limit;
