create or replace function rowq.internal_parse_moment(p_text text)
returns timestamp with time zone
language plpgsql
set timezone = 'GMT'
set datestyle = 'ISO, YMD'
as $$
-- routine   internal_parse_moment
-- purpose   Read a moment in ISO 8601, UTC without a zone, whatever the caller's settings say.
-- promise   P15
-- differs   a text that is none raises an error of the class 22
begin
    return p_text::timestamp with time zone;
end;
$$;
