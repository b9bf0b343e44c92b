procedure internal_cut_headers(
    p_messages in clob,
    p_headers  out nocopy t_clobs,
    p_rest     out nocopy clob
)
is
-- routine   internal_cut_headers
-- purpose   Cut the headers out of a batch as text; {} takes their place in p_rest.
-- promise   P15 P20
-- differs   no such helper elsewhere: an object of JSON has values here, and rounds numbers
    c_quote  constant pls_integer := ascii('"');
    c_blanks constant varchar2(4 char) := chr(9) || chr(10) || chr(13) || chr(32);
    v_part      varchar2(32767);
    v_char      varchar2(4 char);
    v_code      pls_integer;
    v_place     pls_integer := 1;
    v_from      pls_integer;
    v_depth     pls_integer := 0;
    v_message   pls_integer := 1;
    v_word      varchar2(20 char);
    v_in_text   boolean := false;
    v_escaped   boolean := false;
    v_is_inside boolean := false;

    procedure put(p_text in varchar2)
    is
    begin
        if v_is_inside then
            p_headers(v_message) := p_headers(v_message) || p_text;
        elsif p_text is not null then
            dbms_lob.append(p_rest, p_text);
        end if;
    end put;
begin
    p_rest := ' ';
    -- Compare the codes of characters, because a session can have its own order (NLS_SORT).
    loop
        v_part := internal_clob_part(p_messages, v_place, 500);
        exit when v_part is null;
        v_place := v_place + length2(v_part);
        v_from := 1;
        for i in 1 .. length(v_part) loop
            v_char := substr(v_part, i, 1);
            v_code := case when lengthb(v_char) = 1 then ascii(v_char) else 128 end;
            if v_in_text then
                v_in_text := v_escaped or v_code <> c_quote;
                v_escaped := v_code = ascii('\') and not v_escaped;
                v_word := substr(v_word || v_char, 1, 20);
            elsif v_code = c_quote then
                v_in_text := true;
                v_word := null;
            else
                if v_is_inside and v_depth = 2 and v_code in (ascii(','), ascii('}')) then
                    put(substr(v_part, v_from, i - v_from));
                    v_from := i;
                    v_is_inside := false;
                    -- A value that begins with an n is null: the message has no headers.
                    if instr(ltrim(p_headers(v_message), c_blanks), 'n') = 1 then
                        p_headers.delete(v_message);
                        put('null');
                    else
                        put('{}');
                    end if;
                end if;
                v_depth := v_depth + case
                    when v_code in (ascii('{'), ascii('[')) then 1
                    when v_code in (ascii('}'), ascii(']')) then -1
                    else 0
                end;
                if v_depth = 1 and v_code = ascii(',') then
                    v_message := v_message + 1;
                elsif v_depth = 2 and v_code = ascii(':') and instr(v_word, 'headers"') = 1 then
                    put(substr(v_part, v_from, i - v_from + 1));
                    v_from := i + 1;
                    v_is_inside := true;
                    p_headers(v_message) := null;
                end if;
            end if;
        end loop;
        put(substr(v_part, v_from));
    end loop;
end internal_cut_headers;
