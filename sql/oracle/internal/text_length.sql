function internal_text_length(p_text in clob)
return number
is
-- routine   internal_text_length
-- purpose   Return how many characters a text has.
-- promise   P15
-- differs   no such helper elsewhere: dbms_lob.getlength counts an emoji as two
    v_part   varchar2(32767);
    v_place  number := 1;
    v_length number := 0;
begin
    loop
        v_part := internal_clob_part(p_text, v_place, 8000);
        exit when v_part is null;
        v_length := v_length + length(v_part);
        v_place := v_place + length2(v_part);
    end loop;
    return v_length;
end internal_text_length;
