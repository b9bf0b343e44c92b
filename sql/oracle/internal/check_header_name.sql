procedure internal_check_header_name(p_name in varchar2)
is
-- routine   internal_check_header_name
-- purpose   Refuse a bad name of a header to look for; null passes.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: part of cancel_many
    v_code    pls_integer;
    v_is_good boolean := true;
begin
    -- The code of a character of four bytes may be greater than any integer of PL/SQL.
    if length(p_name) > 200 or lengthb(p_name) <> length(p_name) then
        v_is_good := false;
    else
        -- Compare the codes of characters, because regular expressions follow the session's
        -- NLS_SORT.
        for i in 1 .. coalesce(length(p_name), 0) loop
            v_code := ascii(substr(p_name, i, 1));
            v_is_good := v_is_good
                and v_code between 32 and 126
                and v_code not in (ascii('"'), ascii('\'))
                and (i > 1 or v_code <> ascii('-'));
        end loop;
    end if;
    if not v_is_good then
        internal_refuse(
            'header_name must have 1 to 200 printable ASCII characters, no ", \ or leading -'
        );
    end if;
end internal_check_header_name;
