-- Text: JSON, timestamps and lists of ids.
--
-- Results and headers must be JSON that every reader accepts: no number of more than a hundred
-- digits, and no deep nesting. Times are UTC and microseconds; a text of a time is ISO 8601,
-- whatever the session's settings are.
--
--   list_delayed, promote, run_deferred, ... -> from_microseconds
--   message_error, check_results -> json_error
--   parse_messages, refuse_bad_value -> parse_timestamp
--
-- No table.

create or replace function rowq.internal_from_microseconds(p_microseconds bigint)
returns timestamp with time zone
language sql
immutable
as $$
-- purpose   Return the moment that is so many microseconds after the beginning of 1970.
-- differs   only engines whose readers walk dead rows need it
select timestamp with time zone 'epoch' + p_microseconds * interval '1 microsecond'
$$;

create or replace function rowq.internal_json_error(
    p_name       text,
    p_value      jsonb,
    p_kind       text,
    p_too_deep   jsonpath,
    p_max_length integer
)
returns text
language plpgsql
as $$
-- purpose   Return what is wrong with headers or results: p_kind is what they must be, p_too_deep finds what is nested too deep; null means nothing.
-- differs   jsonb has no exponents: digits are counted as they come out
begin
    -- The length of the text is checked last, because a short number such as 1e100000 is very long
    -- as a text. A number that is still no integer after it was multiplied by 1e300 has more than
    -- 300 digits after the point.
    return case
        when jsonb_typeof(p_value) <> p_kind
            then format('%s must be a JSON %s', p_name, p_kind)
        when jsonb_path_exists(p_value, p_too_deep)
            then format('%s must be nested at most 20 deep', p_name)
        when jsonb_path_exists(
                p_value,
                'strict $.** ? (
                    @.type() == "number"
                    && (@ >= 1e300 || @ <= -1e300 || (@ * 1e300).floor() != @ * 1e300)
                )'
            )
            then format('%s must not contain numbers with more than 100 digits', p_name)
        when p_max_length is not null and char_length(p_value::text) > p_max_length
            then format('%s must be at most %s characters', p_name, p_max_length)
    end;
end;
$$;

create or replace function rowq.internal_parse_timestamp(p_text text)
returns timestamp with time zone
language plpgsql
set timezone = 'GMT'
set datestyle = 'ISO, YMD'
as $$
-- purpose   Read a moment in ISO 8601, UTC without a zone, whatever the caller's settings say.
-- differs   a text that is none raises an error of the class 22
begin
    return p_text::timestamp with time zone;
end;
$$;
