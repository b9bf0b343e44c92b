procedure internal_read_pattern(
    p_pattern in varchar2,
    p_head    out varchar2,
    p_shape   out varchar2
)
is
-- routine   internal_read_pattern
-- purpose   Return the words of a pattern before its first * or #, and its shape: a digit for each word, 1 for *, 2 for #, 0 for any other.
-- promise   P35
-- differs   no such helper elsewhere: part of bind_topic
    c_star constant pls_integer := ascii('*');
    c_hash constant pls_integer := ascii('#');
    v_words constant t_texts := internal_words_of(p_pattern);
    v_is_head boolean := true;
begin
    for i in 1 .. v_words.count loop
        v_is_head := v_is_head and ascii(v_words(i)) not in (c_star, c_hash);
        p_shape := p_shape
            || case ascii(v_words(i)) when c_star then '1' when c_hash then '2' else '0' end;
        if v_is_head then
            p_head := p_head || case when i > 1 then '.' end || v_words(i);
        end if;
    end loop;
end internal_read_pattern;
