function internal_body_fault(
    p_body        in clob,
    p_body_binary in blob,
    p_max_length  in number
)
return varchar2
is
-- routine   internal_body_fault
-- purpose   Return what is wrong with the length of a body; null means nothing.
-- promise   P15
    e_never_stored exception;
    pragma exception_init(e_never_stored, -22275);
    v_length number;
begin
    v_length := coalesce(dbms_lob.getlength(p_body), dbms_lob.getlength(p_body_binary), 0);
    -- getlength counts an emoji as two. Counting it as one takes long, so do it only where the body
    -- seems too long.
    if p_body is not null and v_length > p_max_length then
        v_length := internal_text_length(p_body);
    end if;
    if v_length > p_max_length then
        return 'body is ' || internal_number_text(v_length) || ' long, and the queue takes '
            || internal_number_text(p_max_length) || ': max_body_length';
    end if;
    return null;
exception
    when e_never_stored then
        -- An empty_clob() or empty_blob() of the caller's is a locator of no LOB: it has no length.
        return null;
end internal_body_fault;
