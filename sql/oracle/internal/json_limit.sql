procedure internal_json_limit(
    p_name    in varchar2,
    p_json    in clob,
    p_kind    in varchar2,
    p_deepest in number,
    p_longest in number,
    p_cuts    in out nocopy t_numbers,
    p_fault   out varchar2
)
is
-- routine   internal_json_limit
-- purpose   Return what in valid JSON not every JSON reader would accept, or null; the rest is internal_json_fault's.
-- promise   P15
-- differs   no such helper elsewhere: part of json_fault
    c_quote   constant pls_integer := ascii('"');
    c_opening constant pls_integer := case p_kind when 'array' then ascii('[') else ascii('{') end;
    v_part     varchar2(32767);
    v_char     varchar2(4 char);
    v_code     pls_integer;
    v_place    pls_integer := 1;
    v_from     pls_integer;
    v_length   pls_integer := 0;
    v_depth    pls_integer := 0;
    v_before   pls_integer;
    v_digits   pls_integer := 0;
    v_exponent pls_integer;
    v_in_text  boolean := false;
    v_escaped  boolean := false;
begin
    -- Compare the codes of characters, because a session can have its own order (NLS_SORT).
    loop
        -- Read short parts, because substr counts from the start of a part each time.
        v_part := internal_clob_part(p_json, v_place, 500);
        exit when v_part is null;
        v_from := v_place;
        v_place := v_place + length2(v_part);
        v_length := v_length + length(v_part);
        if v_length > p_longest then
            p_fault := p_name || ' are longer than ' || internal_number_text(p_longest)
                || ' characters';
            return;
        end if;
        for i in 1 .. length(v_part) loop
            -- For an emoji, ascii returns its four bytes as a number, too large for a pls_integer.
            v_char := substr(v_part, i, 1);
            v_code := case when lengthb(v_char) = 1 then ascii(v_char) else 128 end;
            if v_depth = 0 and v_code not in (9, 10, 13, 32, c_opening) then
                p_fault := p_name || ' must be a JSON ' || p_kind;
                return;
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
                    p_fault := p_name || ' have a number of too many digits';
                    return;
                end if;
            elsif v_code in (ascii('e'), ascii('E')) and v_digits > 0 then
                v_exponent := 0;
            elsif v_code not in (ascii('.'), ascii('+'), ascii('-')) then
                v_digits := 0;
                v_exponent := null;
                v_in_text := v_code = c_quote;
                v_before := v_depth;
                v_depth := v_depth + case
                    when v_code in (ascii('{'), ascii('[')) then 1
                    when v_code in (ascii('}'), ascii(']')) then -1
                    else 0
                end;
                if v_before + v_depth = 1 or v_depth = 1 and v_code = ascii(',') then
                    p_cuts(p_cuts.count + 1) := v_from + length2(substr(v_part, 1, i)) - 1;
                end if;
            end if;
            -- A value inside counts as one level deeper. The codes here are blanks, commas, colons
            -- and brackets, which are no values.
            if v_depth > p_deepest
               or v_depth = p_deepest
                  and v_code not in (9, 10, 13, 32, 44, 58, 91, 93, 123, 125) then
                p_fault := p_name || ' are nested more than 20 deep';
                return;
            end if;
        end loop;
    end loop;
end internal_json_limit;
