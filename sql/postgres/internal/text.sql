-- Text: JSON, timestamps and lists of ids.
--
-- Results and headers must be JSON that every parser accepts: no number of more than 100 digits, no
-- deep nesting. Times are UTC with microseconds. Texts of times are ISO 8601, regardless of the
-- session's settings.
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
-- purpose   Convert microseconds since 1970 to a timestamp.
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
-- purpose   Return the error in headers or results, or null.
-- differs   jsonb stores no exponents: digits are counted as they are printed
--
-- p_kind is the type that they must have; p_too_deep finds values that are nested too deep.
begin
    -- Check the length last: a short number such as 1e100000 is very long as text. A number that is
    -- not an integer after multiplying by 1e300 has more than 300 decimal places.
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
-- purpose   Parse an ISO 8601 timestamp, UTC if it has no zone.
-- differs   an invalid text raises an error of class 22
begin
    return p_text::timestamp with time zone;
end;
$$;
