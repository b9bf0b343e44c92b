function internal_topic_fault(
    p_name       in varchar2,
    p_topic      in varchar2,
    p_is_pattern in boolean
)
return varchar2
is
-- routine   internal_topic_fault
-- purpose   Return what is wrong with a topic or a pattern; null means nothing.
-- promise   P15
    c_star constant pls_integer := ascii('*');
    c_hash constant pls_integer := ascii('#');
    v_words   t_texts;
    v_is_good boolean;

    -- is_word says whether a text is one or more letters, digits, _ or -. It compares their codes,
    -- because regular expressions follow the session's NLS_SORT.
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
        return p_name || ' is missing';
    elsif length(p_topic) > 200 then
        return p_name || ' is longer than 200 characters';
    end if;

    -- The code of a character of four bytes may be greater than any integer of PL/SQL.
    v_is_good := lengthb(p_topic) = length(p_topic);
    if v_is_good then
        v_words := internal_words_of(p_topic);
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
            then p_name || ' must be words of letters, digits, _, - or *, with dots between, # last'
        else p_name || ' must be words of letters, digits, _, -, with dots between'
    end;
end internal_topic_fault;
