function internal_tick_headers(p_schedule in t_schedule, p_tick in timestamp)
return clob
is
-- routine   internal_tick_headers
-- purpose   Return the headers of a message of a schedule: its own, the schedule's name and the tick.
-- promise   P20
-- differs   the two are added to the text, so that its own numbers stay as they are
    c_blanks constant varchar2(4 char) := chr(9) || chr(10) || chr(13) || chr(32);
    v_headers clob := '{';
    v_last    varchar2(4 char);
    v_name    varchar2(400 char);
begin
    if p_schedule.headers is not null then
        -- Leave out the brace at the end.
        v_headers := rtrim(p_schedule.headers, c_blanks);
        v_headers := rtrim(substr(v_headers, 1, length(v_headers) - 1), c_blanks);
    end if;
    v_last := substr(v_headers, -1);
    if ascii(v_last) <> ascii('{') then
        v_headers := v_headers || ', ';
    end if;
    -- A name has no control characters.
    v_name := replace(replace(p_schedule.schedule_name, '\', '\\'), '"', '\"');
    return v_headers || '"schedule": "' || v_name || '", "tick": "'
        || to_char(p_tick, 'yyyy-mm-dd"T"hh24:mi:ss.ff6"Z"', 'nls_calendar=gregorian') || '"}';
end internal_tick_headers;
