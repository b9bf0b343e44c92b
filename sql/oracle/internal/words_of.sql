function internal_words_of(p_text in varchar2)
return t_texts
is
-- routine   internal_words_of
-- purpose   Return the words of a topic or a pattern, which dots part; every character of it is one byte.
-- promise   P35
-- differs   no such helper elsewhere: other engines have a function for it
    c_dot constant pls_integer := ascii('.');
    v_words t_texts;
    v_from  pls_integer := 1;
begin
    -- Compare the codes of characters, because instr follows the session's NLS_COMP and NLS_SORT.
    for i in 1 .. length(p_text) loop
        if ascii(substr(p_text, i, 1)) = c_dot then
            v_words(v_words.count + 1) := substr(p_text, v_from, i - v_from);
            v_from := i + 1;
        end if;
    end loop;
    v_words(v_words.count + 1) := substr(p_text, v_from);
    return v_words;
end internal_words_of;
