function internal_topic_patterns(p_topic in varchar2)
return rowq_keys
is
-- routine   internal_topic_patterns
-- purpose   Return, as bytes, the patterns that a topic would match: one of each shape that there is among those which begin as it does.
-- promise   P35
-- differs   no such helper elsewhere: other engines compare by like, which here follows NLS_SORT
    v_words constant t_texts := internal_words_of(p_topic);
    v_heads    rowq_keys := rowq_keys();
    v_patterns rowq_keys := rowq_keys();
    v_shapes   t_texts;
    v_head     varchar2(200 char);
    v_pattern  varchar2(400 char);

    -- pattern_of is null where a pattern of that shape has more or fewer words than the topic.
    function pattern_of(p_shape in varchar2)
    return varchar2
    is
        v_has_rest constant boolean := to_number(substr(p_shape, -1), '9') = 2;
        v_count    constant pls_integer := length(p_shape) - case when v_has_rest then 1 else 0 end;
        v_text varchar2(400 char);
    begin
        if v_count > v_words.count or v_count < v_words.count and not v_has_rest then
            return null;
        end if;
        for i in 1 .. v_count loop
            v_text := v_text || case when i > 1 then '.' end
                || case to_number(substr(p_shape, i, 1), '9') when 1 then '*' else v_words(i) end;
        end loop;
        if v_has_rest then
            v_text := v_text || case when v_count > 0 then '.' end || '#';
        end if;
        return v_text;
    end pattern_of;
begin
    v_heads.extend(v_words.count + 1);
    v_heads(1) := internal_head_key(null);
    for i in 1 .. v_words.count loop
        v_head := v_head || case when i > 1 then '.' end || v_words(i);
        v_heads(i + 1) := internal_head_key(v_head);
    end loop;

    select /*+ leading(h b) use_nl(b) cardinality(h 4) index(b rowq_topic_binding_head_ix) */
           distinct b.shape
    bulk collect into v_shapes
    from table(v_heads) h
    join rowq_topic_binding b on b.head_key = h.column_value;

    for i in 1 .. v_shapes.count loop
        v_pattern := pattern_of(v_shapes(i));
        if v_pattern is not null then
            v_patterns.extend;
            v_patterns(v_patterns.last) := utl_raw.cast_to_raw(v_pattern);
        end if;
    end loop;
    return v_patterns;
end internal_topic_patterns;
