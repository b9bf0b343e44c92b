-- Text: JSON, timestamps and lists of ids.
--
-- Results and headers must be JSON that every reader accepts: no number of more than a hundred
-- digits, and no deep nesting. Times are UTC and microseconds; a text of a time is ISO 8601,
-- whatever the session's settings are.
--
-- SQL functions differ between sessions with other NLS settings, so texts and numbers are converted
-- here with formats of their own. A LOB is read in pieces that fit varchar2.
--
--   dequeue_wait, wait_for_result, run_deferred, ... -> seconds_since -> microseconds
--   report_worker, new_message, push_ready, ... -> microseconds
--   retry_later, fail_now, release, ... -> ids_of
--   extend_lease, parse_message, record_error, ... -> clob_part
--   cancel_many -> has_header -> number_text, clob_part
--   body_error, check_range, check_whole, ... -> number_text
--   maintain, back_off -> random_fraction
--   list_delayed, promote, run_deferred_groups, ... -> from_microseconds
--   parse_messages -> cut_headers -> clob_part
--   parse_message -> from_base64 -> clob_part
--   is_id_list, parse_messages -> is_json
--   messages_json, result_json -> iso_text
--   message_error, check_schedule, read_results -> json_error -> is_json, json_limit
--   json_limit -> clob_part, number_text
--   parse_message -> parse_timestamp
--   body_error, read_results -> text_length -> clob_part
--   messages_json -> to_base64
--
-- No table.

function internal_seconds_since(p_moment in timestamp, p_now in timestamp)
return number
is
-- purpose   Return the seconds from a moment to p_now; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
begin
    return (internal_microseconds(p_now) - internal_microseconds(p_moment)) / 1000000;
end internal_seconds_since;

function internal_microseconds(p_moment in timestamp)
return number
is
-- purpose   Return a moment as microseconds since 1970; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
    v_since interval day(9) to second(6);
begin
    v_since := p_moment - timestamp '1970-01-01 00:00:00';
    return extract(day from v_since) * 86400000000
        + extract(hour from v_since) * 3600000000
        + extract(minute from v_since) * 60000000
        + round(extract(second from v_since) * 1000000);
end internal_microseconds;

function internal_ids_of(p_messages in t_messages)
return rowq_ids
is
-- purpose   Return the ids of messages, as SQL knows a list.
-- differs   no such helper elsewhere: other engines keep messages as a list already
    v_ids rowq_ids := rowq_ids();
begin
    v_ids.extend(p_messages.count);
    for i in 1 .. p_messages.count loop
        v_ids(i) := p_messages(i).message_id;
    end loop;
    return v_ids;
end internal_ids_of;

function internal_clob_part(p_text in clob, p_place in number, p_length in number)
return varchar2
is
-- purpose   Return up to p_length units of a text from a place on; null behind its end.
-- differs   no such helper elsewhere: place and length are UTF-16 units, in which a CLOB counts
    e_split exception;
    pragma exception_init(e_split, -22831);
    e_never_stored exception;
    pragma exception_init(e_never_stored, -22275);
begin
    return dbms_lob.substr(p_text, p_length, p_place);
exception
    when e_split then
        -- The part would end inside an emoji, which is two units, so it ends one unit earlier. The
        -- caller goes on after length2 of the part.
        return dbms_lob.substr(p_text, p_length - 1, p_place);
    when e_never_stored then
        -- An empty_clob() of the caller's is a locator of no LOB: it has no text.
        return null;
end internal_clob_part;

function internal_has_header(p_headers in clob, p_name in varchar2, p_value in clob)
return boolean
is
-- purpose   Return whether headers have one of this name on their first level that is this text, or a whole number, true or false that is written so.
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

function internal_number_text(p_value in number)
return varchar2
is
-- purpose   Return a number as text, with a point whatever the session's NLS_NUMERIC_CHARACTERS are.
-- differs   no such helper elsewhere: other engines have no such setting
begin
    return coalesce(to_char(p_value, 'tm9', 'nls_numeric_characters=''.,'''), 'null');
end internal_number_text;

function internal_random_fraction
return number
is
-- purpose   Return a number from 0 up to 1, a different one each time; not for secrets.
-- differs   no such helper elsewhere: hardened servers give no right to dbms_random
    c_parts constant number := 1000000;
begin
    return dbms_utility.get_hash_value(rawtohex(sys_guid()), 0, c_parts) / c_parts;
end internal_random_fraction;

function internal_from_microseconds(p_microseconds in number)
return timestamp
is
-- purpose   Return the moment that is so many microseconds after the beginning of 1970; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
begin
    -- Days are added by themselves, because numtodsinterval takes 2147483647 seconds at most and
    -- for more gives that many: the moment would stand still from the year 2038 on.
    return timestamp '1970-01-01 00:00:00'
        + numtodsinterval(trunc(p_microseconds / 86400000000), 'day')
        + numtodsinterval(mod(p_microseconds, 86400000000) / 1000000, 'second');
end internal_from_microseconds;

procedure internal_cut_headers(
    p_messages in clob,
    p_headers  out nocopy t_clobs,
    p_rest     out nocopy clob
)
is
-- purpose   Cut the headers out of a batch as text; {} takes their place in p_rest.
-- differs   no such helper elsewhere: an object of JSON has values here, and rounds numbers
    c_quote     constant pls_integer := ascii('"');
    c_blanks    constant varchar2(4 char) := chr(9) || chr(10) || chr(13) || chr(32);
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

function internal_from_base64(p_text in clob)
return blob
is
-- purpose   Return the bytes of a base64 text, line breaks allowed; null when it is none.
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

function internal_is_json(p_text in clob)
return boolean
is
-- purpose   Return whether a text is JSON in the strict sense; false for null.
-- differs   no such helper elsewhere: other engines have a function for it
    v_count pls_integer;
begin
    -- Only SQL knows the condition "is json"; PL/SQL does not.
    select count(*) into v_count
    from dual
    where p_text is json strict;
    return v_count = 1;
end internal_is_json;

function internal_iso_text(p_moment in timestamp)
return varchar2
is
-- purpose   Return a moment in ISO 8601, UTC, with microseconds; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
begin
    return case when p_moment is not null then
        to_char(p_moment, 'yyyy-mm-dd"T"hh24:mi:ss.ff6', 'nls_calendar=gregorian') || '+00:00'
    end;
end internal_iso_text;

procedure internal_json_error(
    p_name    in varchar2,
    p_json    in clob,
    p_kind    in varchar2,
    p_deepest in number,
    p_longest in number,
    p_cuts    out nocopy t_numbers,
    p_error   out varchar2
)
is
-- purpose   Return what is wrong with headers or results: p_kind is what they must be, p_deepest how deep 20 levels are, from the outside; null means nothing. p_cuts are the places of the brackets of the first level, and of the commas between.
begin
    p_error := null;
    p_cuts.delete;
    if p_json is null then
        return;
    end if;
    if internal_is_json(p_json) then
        internal_json_limit(p_name, p_json, p_kind, p_deepest, p_longest, p_cuts, p_error);
    else
        p_error := p_name || ' must be a JSON ' || p_kind;
    end if;
end internal_json_error;

procedure internal_json_limit(
    p_name    in varchar2,
    p_json    in clob,
    p_kind    in varchar2,
    p_deepest in number,
    p_longest in number,
    p_cuts    in out nocopy t_numbers,
    p_error   out varchar2
)
is
-- purpose   Return what in valid JSON not every JSON reader would accept, or null; the rest is internal_json_error's.
-- differs   no such helper elsewhere: part of json_error
    c_quote    constant pls_integer := ascii('"');
    c_opening  constant pls_integer := case p_kind when 'array' then ascii('[') else ascii('{') end;
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
            p_error := p_name || ' must be at most ' || internal_number_text(p_longest)
                || ' characters';
            return;
        end if;
        for i in 1 .. length(v_part) loop
            -- For an emoji, ascii returns its four bytes as a number, too large for a pls_integer.
            v_char := substr(v_part, i, 1);
            v_code := case when lengthb(v_char) = 1 then ascii(v_char) else 128 end;
            if v_depth = 0 and v_code not in (9, 10, 13, 32, c_opening) then
                p_error := p_name || ' must be a JSON ' || p_kind;
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
                    p_error := p_name || ' must not contain numbers with more than 100 digits';
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
                p_error := p_name || ' must be nested at most 20 deep';
                return;
            end if;
        end loop;
    end loop;
end internal_json_limit;

function internal_parse_timestamp(p_text in varchar2)
return timestamp
is
-- purpose   Read a moment in ISO 8601, UTC without a zone; null when it is none.
    c_shape constant varchar2(200 char) :=
        '^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]{1,6})?'
        || '(Z|[+-][0-9]{2}:?[0-9]{2})?$';
    v_zone    varchar2(10 char);
    v_minutes pls_integer := 0;
    v_moment  timestamp(6);
begin
    if p_text is null or not regexp_like(p_text, c_shape, 'c') then
        return null;
    end if;
    v_moment := to_timestamp(
        regexp_substr(p_text, c_shape, 1, 1, 'c', 1) || ' '
        || regexp_substr(p_text, c_shape, 1, 1, 'c', 2)
        || coalesce(regexp_substr(p_text, c_shape, 1, 1, 'c', 3), ':00')
        || coalesce(regexp_substr(p_text, c_shape, 1, 1, 'c', 4), '.0'),
        'yyyy-mm-dd hh24:mi:ss.ff6', 'nls_calendar=gregorian'
    );
    v_zone := regexp_substr(p_text, c_shape, 1, 1, 'c', 5);
    if length(v_zone) > 1 then
        v_minutes := to_number(substr(v_zone, 2, 2), '99') * 60
            + to_number(substr(v_zone, -2), '99');
        -- Compare the code of the sign: NLS_COMP and NLS_SORT may make '-' equal to '+'.
        if ascii(v_zone) = 45 then
            v_minutes := -v_minutes;
        end if;
    end if;
    return v_moment - numtodsinterval(v_minutes, 'minute');
exception
    when others then
        -- A date such as the thirtieth of February raises one of a dozen errors (ORA-018xx): it is
        -- no moment.
        if sqlcode between -1899 and -1800 then
            return null;
        end if;
        raise;
end internal_parse_timestamp;

function internal_text_length(p_text in clob)
return number
is
-- purpose   Return how many characters a text has.
-- differs   no such helper elsewhere: dbms_lob.getlength counts an emoji as two
    v_part   varchar2(32767);
    v_place  number := 1;
    v_length number := 0;
begin
    loop
        v_part := internal_clob_part(p_text, v_place, 8000);
        exit when v_part is null;
        v_length := v_length + length(v_part);
        v_place := v_place + length2(v_part);
    end loop;
    return v_length;
end internal_text_length;

function internal_to_base64(p_bytes in blob)
return clob
is
-- purpose   Return bytes as base64 in one line; null stays null.
-- differs   no such helper elsewhere: other engines have a function for it
    -- 12000 bytes are a whole number of groups of three, so that only the last chunk is padded.
    c_step   constant pls_integer := 12000;
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
