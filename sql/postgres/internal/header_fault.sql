create or replace function rowq.internal_header_fault(p_headers jsonb)
returns text
language plpgsql
as $$
-- routine   internal_header_fault
-- purpose   Return what is wrong with headers; null means nothing.
-- promise   P15
-- differs   jsonb has no exponents: digits are counted as they come out
begin
    -- The length of the text is checked last, because a short number such as 1e100000 is very long
    -- as a text. A number that is still no integer after it was multiplied by 1e300 has more than
    -- 300 digits after the point.
    return case
        when jsonb_typeof(p_headers) <> 'object'
            then 'headers must be a JSON object'
        when jsonb_path_exists(p_headers, 'strict $.**{20}')
            then 'headers are nested more than 20 deep'
        when jsonb_path_exists(
                p_headers,
                'strict $.** ? (
                    @.type() == "number"
                    && (@ >= 1e300 || @ <= -1e300 || (@ * 1e300).floor() != @ * 1e300)
                )'
            )
            then 'headers have a number of too many digits'
        when char_length(p_headers::text) > 65536
            then 'headers are longer than 65536 characters'
    end;
end;
$$;
