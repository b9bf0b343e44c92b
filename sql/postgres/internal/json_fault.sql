create or replace function rowq.internal_json_fault(
    p_name       text,
    p_value      jsonb,
    p_kind       text,
    p_too_deep   jsonpath,
    p_max_length integer
)
returns text
language plpgsql
as $$
-- routine   internal_json_fault
-- purpose   Return what is wrong with headers or results: p_kind is what they must be, p_too_deep finds what is nested too deep; null means nothing.
-- promise   P15
-- differs   jsonb has no exponents: digits are counted as they come out
begin
    -- The length of the text is checked last, because a short number such as 1e100000 is very long
    -- as a text. A number that is still no integer after it was multiplied by 1e300 has more than
    -- 300 digits after the point.
    return case
        when jsonb_typeof(p_value) <> p_kind
            then format('%s must be a JSON %s', p_name, p_kind)
        when jsonb_path_exists(p_value, p_too_deep)
            then format('%s are nested more than 20 deep', p_name)
        when jsonb_path_exists(
                p_value,
                'strict $.** ? (
                    @.type() == "number"
                    && (@ >= 1e300 || @ <= -1e300 || (@ * 1e300).floor() != @ * 1e300)
                )'
            )
            then format('%s have a number of too many digits', p_name)
        when p_max_length is not null and char_length(p_value::text) > p_max_length
            then format('%s are longer than %s characters', p_name, p_max_length)
    end;
end;
$$;
