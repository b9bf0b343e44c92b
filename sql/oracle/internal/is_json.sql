function internal_is_json(p_text in clob)
return boolean
is
-- routine   internal_is_json
-- purpose   Return whether a text is JSON in the strict sense; false for null.
-- promise   P15
-- differs   no such helper elsewhere: other engines have a function for it
    v_count pls_integer;
begin
    -- Only SQL knows the condition "is json"; PL/SQL does not.
    select count(*) into v_count
    from dual
    where p_text is json strict;
    return v_count = 1;
end internal_is_json;
