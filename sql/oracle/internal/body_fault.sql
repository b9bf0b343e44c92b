function internal_body_fault(
    p_body        in clob,
    p_body_binary in blob,
    p_max_length  in number
)
return varchar2
is
-- routine   internal_body_fault
-- version   1
-- purpose   What is wrong with the length of a body, or null.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   an emoji counts as two characters, as everywhere in a clob
    v_length constant number := coalesce(
        dbms_lob.getlength(p_body), dbms_lob.getlength(p_body_binary), 0
    );
begin
    if v_length > p_max_length then
        return 'body is ' || internal_number_text(v_length) || ' long, and the queue takes '
            || internal_number_text(p_max_length) || ': max_body_length';
    end if;
    return null;
end internal_body_fault;
