function internal_iso_text(p_moment in timestamp)
return varchar2
is
-- routine   internal_iso_text
-- purpose   Return a moment in ISO 8601, UTC, with microseconds; null stays null.
-- promise   P20
-- differs   no such helper elsewhere: other engines have a function for it
begin
    return case when p_moment is not null then
        to_char(p_moment, 'yyyy-mm-dd"T"hh24:mi:ss.ff6', 'nls_calendar=gregorian') || '+00:00'
    end;
end internal_iso_text;
