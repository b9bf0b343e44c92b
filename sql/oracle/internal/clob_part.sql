function internal_clob_part(p_text in clob, p_place in number, p_length in number)
return varchar2
is
-- routine   internal_clob_part
-- purpose   Return up to p_length units of a text from a place on; null behind its end.
-- promise   P15 P20
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
