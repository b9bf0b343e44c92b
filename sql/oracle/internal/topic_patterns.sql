procedure internal_topic_patterns(
    p_topic    in varchar2,
    p_shapes   in out nocopy t_shapes,
    p_patterns out rowq_keys
)
is
-- routine   internal_topic_patterns
-- purpose   Return, as bytes, the patterns that a topic would match: one of each shape that there is among those which begin as it does. p_shapes keeps the shapes that were read.
-- promise   P35
-- differs   no such helper elsewhere: others compare one topic by like, which here follows NLS_SORT
    v_words constant t_texts := internal_words_of(p_topic);
    v_heads       rowq_keys := rowq_keys();
    v_unread      rowq_keys := rowq_keys();
    v_found_heads rowq_keys;
    v_found       t_texts;
    v_none        t_texts;
    v_head        varchar2(200 char);
    v_pattern     varchar2(400 char);
    v_key         varchar2(4000);

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

    -- A batch reads each pattern once, however many of its topics begin as the pattern does.
    for i in 1 .. v_heads.count loop
        if not p_shapes.exists(rawtohex(v_heads(i))) then
            v_unread.extend;
            v_unread(v_unread.last) := v_heads(i);
        end if;
    end loop;
    select /*+ leading(h b) use_nl(b) cardinality(h 4) index(b rowq_topic_binding_head_ix) */
           distinct b.head_key, b.shape
    bulk collect into v_found_heads, v_found
    from table(v_unread) h
    join rowq_topic_binding b on b.head_key = h.column_value;
    for i in 1 .. v_found.count loop
        v_key := rawtohex(v_found_heads(i));
        if not p_shapes.exists(v_key) then
            p_shapes(v_key) := v_none;
        end if;
        p_shapes(v_key)(p_shapes(v_key).count + 1) := v_found(i);
    end loop;

    p_patterns := rowq_keys();
    for i in 1 .. v_heads.count loop
        v_key := rawtohex(v_heads(i));
        if p_shapes.exists(v_key) then
            for n in 1 .. p_shapes(v_key).count loop
                v_pattern := pattern_of(p_shapes(v_key)(n));
                if v_pattern is not null then
                    p_patterns.extend;
                    p_patterns(p_patterns.last) := utl_raw.cast_to_raw(v_pattern);
                end if;
            end loop;
        end if;
    end loop;
end internal_topic_patterns;
