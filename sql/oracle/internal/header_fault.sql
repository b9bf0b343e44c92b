function internal_header_fault(p_headers in clob)
return varchar2
is
-- routine   internal_header_fault
-- purpose   Return what is wrong with headers; null means nothing.
-- promise   P15
-- differs   no such helper elsewhere: part of message_fault
begin
    if p_headers is null then
        return null;
    end if;
    if not internal_is_json(p_headers) then
        return 'headers must be a JSON object';
    end if;
    return internal_header_limit(p_headers);
end internal_header_fault;
