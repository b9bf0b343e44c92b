function internal_head_key(p_head in varchar2)
return raw
is
-- routine   internal_head_key
-- purpose   Return the first words of a topic or a pattern as bytes.
-- promise   P35
-- differs   no such helper elsewhere: there an empty text is not null
begin
    -- Where there is no such word, a dot stands for it, because an empty text is null. No head is a
    -- dot.
    return utl_raw.cast_to_raw(coalesce(p_head, '.'));
end internal_head_key;
