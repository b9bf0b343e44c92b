-- Text: JSON, timestamps and lists of ids.
--
-- Results and headers must be JSON that every parser accepts: no number of more than 100 digits, no
-- deep nesting. Times are UTC with microseconds. Texts of times are ISO 8601, regardless of the
-- session's settings.
--
-- SQL functions depend on the session's NLS settings, so these helpers convert texts and numbers
-- with explicit formats. They read a LOB in pieces that fit varchar2.
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

function internal_seconds_since(p_time in timestamp, p_now in timestamp)
return number
is
-- purpose   Return the seconds from p_time to p_now, or null for null.
begin
    return (internal_microseconds(p_now) - internal_microseconds(p_time)) / 1000000;
end internal_seconds_since;

function internal_microseconds(p_time in timestamp)
return number
is
-- purpose   Convert a timestamp to microseconds since 1970; return null for null.
    v_since interval day(9) to second(6);
begin
    v_since := p_time - timestamp '1970-01-01 00:00:00';
    return extract(day from v_since) * 86400000000
        + extract(hour from v_since) * 3600000000
        + extract(minute from v_since) * 60000000
        + round(extract(second from v_since) * 1000000);
end internal_microseconds;

function internal_ids_of(p_messages in t_messages)
return rowq_ids
is
-- purpose   Return the ids of messages as an SQL collection.
    v_ids rowq_ids := rowq_ids();
begin
    v_ids.extend(p_messages.count);
    for i in 1 .. p_messages.count loop
        v_ids(i) := p_messages(i).message_id;
    end loop;
    return v_ids;
end internal_ids_of;

function internal_clob_part(p_text in clob, p_position in number, p_length in number)
return varchar2
is
-- purpose   Return up to p_length units of a text from p_position on; null after its end.
-- differs   only here: positions and lengths of a CLOB are UTF-16 units
    e_split exception;
    pragma exception_init(e_split, -22831);
    e_never_stored exception;
    pragma exception_init(e_never_stored, -22275);
begin
    return dbms_lob.substr(p_text, p_length, p_position);
exception
    when e_split then
        -- The part would end inside an emoji, which is 2 units: end it 1 unit earlier. The caller
        -- continues after length2 of the part.
        return dbms_lob.substr(p_text, p_length - 1, p_position);
    when e_never_stored then
        -- The caller's empty_clob() is a locator without a LOB, and has no text.
        return null;
end internal_clob_part;

function internal_has_header(p_headers in clob, p_name in varchar2, p_value in clob)
return boolean
is
-- purpose   Return whether a top-level header has a value: a text, an integer, true or false.
    v_object   json_object_t;
    v_element  json_element_t;
    v_number   number;
    v_text     clob;
    v_part     varchar2(32767);
    v_other    varchar2(32767);
    v_position pls_integer := 1;
begin
    if p_headers is null then
        return false;
    end if;
    -- A JSON path in SQL must be a literal, so parse the object to find any name.
    v_object := json_object_t.parse(p_headers);
    if not v_object.has(p_name) then
        return false;
    end if;
    v_element := v_object.get(p_name);
    if v_element.is_string() then
        v_text := v_object.get_clob(p_name);
    elsif v_element.is_number() then
        v_number := v_object.get_number(p_name);
        -- A number beyond the range of NUMBER is read as null, one of more than 38 digits is
        -- rounded.
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

    -- Compare bytes, part by part: texts that end together are equal, also empty ones.
    loop
        v_part := internal_clob_part(v_text, v_position, 8000);
        v_other := internal_clob_part(p_value, v_position, 8000);
        if v_part is null or v_other is null then
            return v_part is null and v_other is null;
        end if;
        if utl_raw.cast_to_raw(v_part) <> utl_raw.cast_to_raw(v_other) then
            return false;
        end if;
        v_position := v_position + length2(v_part);
    end loop;
end internal_has_header;

function internal_number_text(p_value in number)
return varchar2
is
-- purpose   Return a number as text with a decimal point, regardless of NLS_NUMERIC_CHARACTERS.
-- differs   only here is there such a setting
begin
    return coalesce(to_char(p_value, 'tm9', 'nls_numeric_characters=''.,'''), 'null');
end internal_number_text;

function internal_random_fraction
return number
is
-- purpose   Return a random number from 0 up to 1; not for secrets.
-- differs   only here: hardened servers grant no execute on dbms_random
    c_parts constant number := 1000000;
begin
    return dbms_utility.get_hash_value(rawtohex(sys_guid()), 0, c_parts) / c_parts;
end internal_random_fraction;

function internal_from_microseconds(p_microseconds in number)
return timestamp
is
-- purpose   Convert microseconds since 1970 to a timestamp; return null for null.
begin
    -- Add days separately: numtodsinterval truncates to 2147483647 seconds, so times would stand
    -- still from the year 2038 on.
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
-- purpose   Cut the headers out of a batch as text, and replace them by {} in p_rest.
-- differs   only here: JSON objects round numbers
    c_quote     constant pls_integer := ascii('"');
    c_blanks    constant varchar2(4 char) := chr(9) || chr(10) || chr(13) || chr(32);
    v_part      varchar2(32767);
    v_char      varchar2(4 char);
    v_code      pls_integer;
    v_position  pls_integer := 1;
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
    -- Compare character codes: NLS_SORT changes how texts compare.
    loop
        v_part := internal_clob_part(p_messages, v_position, 500);
        exit when v_part is null;
        v_position := v_position + length2(v_part);
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
                    -- A value that begins with n is null: the message has no headers.
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
-- purpose   Decode a base64 text with optional line breaks; return null if it is invalid.
    -- A multiple of 4, and few enough bytes even at 4 bytes per character.
    c_step constant pls_integer := 8000;
    c_alphabet constant varchar2(64 char) :=
        'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    v_text     clob := replace(replace(p_text, chr(10)), chr(13));
    v_length   pls_integer := coalesce(dbms_lob.getlength(v_text), 0);
    v_bytes    blob;
    v_chunk    varchar2(32767);
    v_digits   varchar2(32767);
    v_raw      raw(32767);
    v_position pls_integer := 1;
begin
    if mod(v_length, 4) <> 0 then
        return null;
    end if;
    dbms_lob.createtemporary(v_bytes, true, dbms_lob.call);
    while v_position <= v_length loop
        v_chunk := internal_clob_part(v_text, v_position, c_step);
        v_position := v_position + length2(v_chunk);
        v_digits := case when v_position > v_length then rtrim(v_chunk, '=') else v_chunk end;
        -- Use ltrim: ranges of regular expressions depend on NLS_SORT.
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
-- purpose   Return whether a text is strict JSON; false for null.
    v_count pls_integer;
begin
    -- PL/SQL has no condition "is json".
    select count(*) into v_count
    from dual
    where p_text is json strict;
    return v_count = 1;
end internal_is_json;

function internal_iso_text(p_time in timestamp)
return varchar2
is
-- purpose   Return a timestamp as ISO 8601 text in UTC; null for null.
begin
    return case when p_time is not null then
        to_char(p_time, 'yyyy-mm-dd"T"hh24:mi:ss.ff6', 'nls_calendar=gregorian') || '+00:00'
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
-- purpose   Return the error in headers or results, or null.
--
-- p_kind is the type that they must have, p_deepest the depth of their level 20. p_cuts returns the
-- positions of the first level's brackets and commas.
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
-- purpose   Return the error in valid JSON that a parser may not accept, or null.
    c_quote    constant pls_integer := ascii('"');
    c_opening  constant pls_integer := case p_kind when 'array' then ascii('[') else ascii('{') end;
    v_part     varchar2(32767);
    v_char     varchar2(4 char);
    v_code     pls_integer;
    v_position pls_integer := 1;
    v_from     pls_integer;
    v_length   pls_integer := 0;
    v_depth    pls_integer := 0;
    v_before   pls_integer;
    v_digits   pls_integer := 0;
    v_exponent pls_integer;
    v_in_text  boolean := false;
    v_escaped  boolean := false;
begin
    -- Compare character codes: NLS_SORT changes how texts compare.
    loop
        -- Read short parts: substr counts from the start of a part.
        v_part := internal_clob_part(p_json, v_position, 500);
        exit when v_part is null;
        v_from := v_position;
        v_position := v_position + length2(v_part);
        v_length := v_length + length(v_part);
        if v_length > p_longest then
            p_error := p_name || ' must be at most ' || internal_number_text(p_longest)
                || ' characters';
            return;
        end if;
        for i in 1 .. length(v_part) loop
            -- The code of a 4-byte character may exceed a pls_integer.
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
            -- A value counts as one level deeper. The codes are blanks, commas, colons and
            -- brackets.
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
-- purpose   Parse an ISO 8601 timestamp, UTC if it has no zone; return null if it is invalid.
    c_shape constant varchar2(200 char) :=
        '^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]{1,6})?'
        || '(Z|[+-][0-9]{2}:?[0-9]{2})?$';
    v_zone    varchar2(10 char);
    v_minutes pls_integer := 0;
    v_time  timestamp(6);
begin
    if p_text is null or not regexp_like(p_text, c_shape, 'c') then
        return null;
    end if;
    v_time := to_timestamp(
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
        -- Compare the code: NLS_COMP and NLS_SORT may make '-' equal to '+'.
        if ascii(v_zone) = 45 then
            v_minutes := -v_minutes;
        end if;
    end if;
    return v_time - numtodsinterval(v_minutes, 'minute');
exception
    when others then
        -- A date such as February 30 raises one of a dozen errors, ORA-018xx.
        if sqlcode between -1899 and -1800 then
            return null;
        end if;
        raise;
end internal_parse_timestamp;

function internal_text_length(p_text in clob)
return number
is
-- purpose   Return the number of characters of a text.
-- differs   only here: dbms_lob.getlength counts an emoji as 2
    v_part     varchar2(32767);
    v_position number := 1;
    v_length   number := 0;
begin
    loop
        v_part := internal_clob_part(p_text, v_position, 8000);
        exit when v_part is null;
        v_length := v_length + length(v_part);
        v_position := v_position + length2(v_part);
    end loop;
    return v_length;
end internal_text_length;

function internal_to_base64(p_bytes in blob)
return clob
is
-- purpose   Encode bytes as base64 in one line; return null for null.
    -- A multiple of 3, so that only the last chunk is padded.
    c_step     constant pls_integer := 12000;
    v_length   pls_integer := dbms_lob.getlength(p_bytes);
    v_position pls_integer := 1;
    v_chunk    varchar2(32767);
    v_text     clob;
begin
    if p_bytes is null then
        return null;
    end if;
    dbms_lob.createtemporary(v_text, true, dbms_lob.call);
    while v_position <= v_length loop
        v_chunk := utl_raw.cast_to_varchar2(
            utl_encode.base64_encode(dbms_lob.substr(p_bytes, c_step, v_position))
        );
        v_chunk := replace(replace(v_chunk, chr(13)), chr(10));
        dbms_lob.writeappend(v_text, length(v_chunk), v_chunk);
        v_position := v_position + c_step;
    end loop;
    return v_text;
end internal_to_base64;
