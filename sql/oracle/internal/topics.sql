-- Topics: publish, and the patterns that queues are bound to.
--
-- A published message goes once to every queue with a matching pattern, in the order of queue
-- names, in the caller's transaction. An index finds patterns by their prefix, the words before the
-- first wildcard. A call reads once which shapes of patterns exist, and looks up one pattern per
-- shape instead of comparing every pair. Arguments are checked even if no queue is bound.
--
--   bind_topic -> prefix_key
--   bind_topic -> read_pattern -> split_words
--   bind_topic, unbind_topic, parse_message -> topic_error -> split_words
--   publish_batch -> publish -> bound_queues, store_bound
--   bound_queues -> topic_patterns
--   topic_patterns -> split_words, prefix_key
--
-- Reads queue, topic_binding.

function internal_prefix_key(p_prefix in varchar2)
return raw
is
-- purpose   Return a prefix of a topic or pattern as bytes.
-- differs   only here an empty text is null
begin
    -- Use a dot, which is never a prefix, for the empty prefix.
    return utl_raw.cast_to_raw(coalesce(p_prefix, '.'));
end internal_prefix_key;

procedure internal_read_pattern(
    p_pattern in varchar2,
    p_prefix  out varchar2,
    p_shape   out varchar2
)
is
-- purpose   Return a pattern's prefix and shape: a digit per word, 1 for *, 2 for #, else 0.
    c_star constant pls_integer := ascii('*');
    c_hash constant pls_integer := ascii('#');
    v_words constant t_texts := internal_split_words(p_pattern);
    v_is_prefix boolean := true;
begin
    for i in 1 .. v_words.count loop
        v_is_prefix := v_is_prefix and ascii(v_words(i)) not in (c_star, c_hash);
        p_shape := p_shape
            || case ascii(v_words(i)) when c_star then '1' when c_hash then '2' else '0' end;
        if v_is_prefix then
            p_prefix := p_prefix || case when i > 1 then '.' end || v_words(i);
        end if;
    end loop;
end internal_read_pattern;

function internal_split_words(p_text in varchar2)
return t_texts
is
-- purpose   Return the words of a topic or pattern, which must be ASCII.
    c_dot   constant pls_integer := ascii('.');
    v_words t_texts;
    v_from  pls_integer := 1;
begin
    -- Compare character codes: instr depends on NLS_COMP and NLS_SORT.
    for i in 1 .. length(p_text) loop
        if ascii(substr(p_text, i, 1)) = c_dot then
            v_words(v_words.count + 1) := substr(p_text, v_from, i - v_from);
            v_from := i + 1;
        end if;
    end loop;
    v_words(v_words.count + 1) := substr(p_text, v_from);
    return v_words;
end internal_split_words;

function internal_topic_error(
    p_name       in varchar2,
    p_topic      in varchar2,
    p_is_pattern in boolean
)
return varchar2
is
-- purpose   Return the error in a topic or pattern, or null.
    c_star    constant pls_integer := ascii('*');
    c_hash    constant pls_integer := ascii('#');
    v_words   t_texts;
    v_is_good boolean;

    -- Return whether a text is one or more letters, digits, _ or -. Compare character codes:
    -- regular expressions depend on NLS_SORT.
    function is_word(p_text in varchar2)
    return boolean
    is
        v_code pls_integer;
    begin
        for i in 1 .. coalesce(length(p_text), 0) loop
            v_code := ascii(substr(p_text, i, 1));
            if not (
                v_code between ascii('A') and ascii('Z')
                or v_code between ascii('a') and ascii('z')
                or v_code between ascii('0') and ascii('9')
                or v_code in (ascii('_'), ascii('-'))
            )
            then
                return false;
            end if;
        end loop;
        return p_text is not null;
    end is_word;
begin
    if p_topic is null then
        return p_name || ' is required';
    elsif length(p_topic) > 200 then
        return p_name || ' must be at most 200 characters';
    end if;

    -- The code of a 4-byte character may exceed a pls_integer.
    v_is_good := lengthb(p_topic) = length(p_topic);
    if v_is_good then
        v_words := internal_split_words(p_topic);
    end if;
    for i in 1 .. v_words.count loop
        if p_is_pattern and length(v_words(i)) = 1
           and (ascii(v_words(i)) = c_star or i = v_words.count and ascii(v_words(i)) = c_hash)
        then
            continue;
        end if;
        v_is_good := v_is_good and is_word(v_words(i));
    end loop;
    return case
        when v_is_good
            then null
        when p_is_pattern
            then p_name || ' must be words of letters, digits, _, - or *, separated by dots, # last'
        else p_name || ' must be words of letters, digits, _ and -, separated by dots'
    end;
end internal_topic_error;

procedure internal_publish(
    p_new  in t_new_messages,
    p_sent out nocopy rowq_sent_list
)
is
-- purpose   Store messages in the queues bound to their topics, after checking body lengths.
-- locks     as internal_bound_queues; as internal_store, in the order of queue names
-- errors    RQ711
    v_bound    t_bound_queues;
    v_position pls_integer;
    v_error    varchar2(32767);
    v_own      t_new_messages;
begin
    p_sent := rowq_sent_list();
    v_bound := internal_bound_queues(p_new);
    -- Check all before storing any, because a trigger has no savepoint.
    for i in 1 .. v_bound.count loop
        v_position := v_bound(i).place;
        v_error := internal_body_error(
            p_new(v_position).body, p_new(v_position).body_binary, v_bound(i).max_body_length
        );
        if v_error is not null then
            v_error := v_error || ' in queue ' || v_bound(i).queue_name;
            -- A message of publish has place 0.
            if p_new(v_position).place > 0 then
                v_error := v_error || ' (message ' || internal_number_text(v_position) || ')';
            end if;
            internal_refuse(v_error);
        end if;
    end loop;

    for i in 1 .. v_bound.count loop
        v_own(v_own.count + 1) := p_new(v_bound(i).place);
        if i = v_bound.count or v_bound(i).queue_id <> v_bound(i + 1).queue_id then
            internal_store_bound(v_bound(i), v_own, p_sent);
            v_own.delete;
        end if;
    end loop;
end internal_publish;

function internal_bound_queues(p_new in t_new_messages)
return t_bound_queues
is
-- purpose   Return the queues that are bound to topics, by name; protect them from drop_queue.
-- locks     the table message in row exclusive mode; waits for a running drop_queue
    v_found    t_bound_queues;
    v_topic    varchar2(400 char);
    v_first    t_positions;
    v_lists    t_key_lists;
    v_shapes   t_shapes;
    v_patterns rowq_keys;
    v_keys     rowq_topic_keys := rowq_topic_keys();
begin
    -- drop_queue locks all tables. The next statements see the queues that it left, and no other
    -- drop_queue can start before this transaction ends.
    lock table rowq_message in row exclusive mode;

    for i in 1 .. p_new.count loop
        -- Hex digits differ from each other under every NLS_SORT.
        v_topic := rawtohex(utl_raw.cast_to_raw(p_new(i).topic));
        if not v_first.exists(v_topic) then
            v_first(v_topic) := i;
            internal_topic_patterns(p_new(i).topic, v_shapes, v_patterns);
            v_lists(i) := v_patterns;
        end if;
        v_patterns := v_lists(v_first(v_topic));
        for n in 1 .. v_patterns.count loop
            v_keys.extend;
            v_keys(v_keys.last) := rowq_topic_key(i, v_patterns(n));
        end loop;
    end loop;

    select /*+ leading(k b q) use_nl(b) use_nl(q) cardinality(k 10)
               index(b rowq_topic_binding_key_ix) index(q rowq_queue_pk) */
           distinct k.place, q.queue_id, q.queue_name, q.queue_key, q.max_body_length,
           q.waiting_until
    bulk collect into v_found
    from table(v_keys) k
    join rowq_topic_binding b on b.pattern_key = k.pattern_key
    join rowq_queue q on q.queue_id = b.queue_id
    order by q.queue_key, k.place;
    return v_found;
end internal_bound_queues;

procedure internal_topic_patterns(
    p_topic    in varchar2,
    p_shapes   in out nocopy t_shapes,
    p_patterns out rowq_keys
)
is
-- purpose   Return, as bytes, the patterns that a topic would match, one per existing shape.
-- differs   elsewhere publish compares by like, which depends on NLS_SORT here
--
-- p_shapes keeps the shapes that were read.
    v_words constant t_texts := internal_split_words(p_topic);
    v_prefixes       rowq_keys := rowq_keys();
    v_unread         rowq_keys := rowq_keys();
    v_found_prefixes rowq_keys;
    v_found          t_texts;
    v_none           t_texts;
    v_prefix         varchar2(200 char);
    v_pattern        varchar2(400 char);
    v_key            varchar2(4000);

    -- Return null if a pattern of that shape has too many or too few words for the topic.
    function build_pattern(p_shape in varchar2)
    return varchar2
    is
        v_matches_rest constant boolean := to_number(substr(p_shape, -1), '9') = 2;
        v_count        constant pls_integer :=
            length(p_shape) - case when v_matches_rest then 1 else 0 end;
        v_text varchar2(400 char);
    begin
        if v_count > v_words.count or v_count < v_words.count and not v_matches_rest then
            return null;
        end if;
        for i in 1 .. v_count loop
            v_text := v_text || case when i > 1 then '.' end
                || case to_number(substr(p_shape, i, 1), '9') when 1 then '*' else v_words(i) end;
        end loop;
        if v_matches_rest then
            v_text := v_text || case when v_count > 0 then '.' end || '#';
        end if;
        return v_text;
    end build_pattern;
begin
    v_prefixes.extend(v_words.count + 1);
    v_prefixes(1) := internal_prefix_key(null);
    for i in 1 .. v_words.count loop
        v_prefix := v_prefix || case when i > 1 then '.' end || v_words(i);
        v_prefixes(i + 1) := internal_prefix_key(v_prefix);
    end loop;

    -- Read each prefix once per batch.
    for i in 1 .. v_prefixes.count loop
        if not p_shapes.exists(rawtohex(v_prefixes(i))) then
            v_unread.extend;
            v_unread(v_unread.last) := v_prefixes(i);
        end if;
    end loop;
    select /*+ leading(h b) use_nl(b) cardinality(h 4) index(b rowq_topic_binding_prefix_ix) */
           distinct b.prefix_key, b.shape
    bulk collect into v_found_prefixes, v_found
    from table(v_unread) h
    join rowq_topic_binding b on b.prefix_key = h.column_value;
    for i in 1 .. v_found.count loop
        v_key := rawtohex(v_found_prefixes(i));
        if not p_shapes.exists(v_key) then
            p_shapes(v_key) := v_none;
        end if;
        p_shapes(v_key)(p_shapes(v_key).count + 1) := v_found(i);
    end loop;

    p_patterns := rowq_keys();
    for i in 1 .. v_prefixes.count loop
        v_key := rawtohex(v_prefixes(i));
        if p_shapes.exists(v_key) then
            for n in 1 .. p_shapes(v_key).count loop
                v_pattern := build_pattern(p_shapes(v_key)(n));
                if v_pattern is not null then
                    p_patterns.extend;
                    p_patterns(p_patterns.last) := utl_raw.cast_to_raw(v_pattern);
                end if;
            end loop;
        end if;
    end loop;
end internal_topic_patterns;

procedure internal_store_bound(
    p_queue in t_bound_queue,
    p_new   in out nocopy t_new_messages,
    p_sent  in out nocopy rowq_sent_list
)
is
-- purpose   Store messages in one bound queue, and append their rows to the result.
-- locks     as internal_store
    -- ORA-20701 (queue_not_found): a serializable transaction still sees a queue that was dropped.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -20701);
    e_cannot_serialize exception;
    pragma exception_init(e_cannot_serialize, -8177);
begin
    internal_store(p_queue.queue_id, p_queue.queue_name, p_new);
    internal_wake_waiters(p_queue.queue_id, p_queue.waiting_until);
    for i in 1 .. p_new.count loop
        p_sent.extend;
        p_sent(p_sent.last) := rowq_sent(
            p_sent.last, p_new(i).place, p_queue.queue_name, p_new(i).message_id, p_new(i).outcome
        );
    end loop;
exception
    when e_no_queue then
        raise e_cannot_serialize;
end internal_store_bound;
