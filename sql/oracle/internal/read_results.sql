procedure internal_read_results(
    p_results in clob,
    p_count   in number,
    p_queue   in t_queue,
    p_values  out nocopy t_clobs
)
is
-- routine   internal_read_results
-- purpose   Return results by their places, without those that are null; refuse what are not p_count good ones, or what the queue does not keep.
-- promise   P15 P32
-- errors    RQ711
-- differs   check_results elsewhere, where SQL finds a result in the array; here it would round
--           numbers
    c_longest constant pls_integer := 1048576;
    v_cuts    t_numbers;
    v_fault   varchar2(32767);
    v_from    number;
    v_to      number;
    v_given   pls_integer := 0;
    v_firsts  t_numbers;
    v_lengths t_numbers;

    -- What JSON has around its values is ASCII, so a place is never in the middle of an emoji.
    function is_blank(p_place in number)
    return boolean
    is
    begin
        return ascii(dbms_lob.substr(p_results, 1, p_place)) in (9, 10, 13, 32);
    end is_blank;
begin
    p_values.delete;
    if p_queue.result_seconds = 0 then
        internal_refuse('the queue keeps no results: its result_seconds is 0');
    end if;
    internal_json_fault('results', p_results, 'array', 21, null, v_cuts, v_fault);
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;

    -- Find the values by their places first, so that each is copied once and no function of SQL
    -- makes a LOB of its own. Only an array without any value has nothing but blanks between two
    -- cuts.
    for i in 1 .. v_cuts.count - 1 loop
        v_from := v_cuts(i) + 1;
        v_to := v_cuts(i + 1) - 1;
        while v_from <= v_to and is_blank(v_from) loop
            v_from := v_from + 1;
        end loop;
        while v_from <= v_to and is_blank(v_to) loop
            v_to := v_to - 1;
        end loop;
        if v_from <= v_to then
            v_given := v_given + 1;
            v_firsts(v_given) := v_from;
            v_lengths(v_given) := v_to - v_from + 1;
        end if;
    end loop;
    if v_given <> p_count then
        internal_refuse(
            'results are ' || internal_number_text(v_given) || ', and message_ids are '
            || internal_number_text(p_count)
        );
    end if;

    for i in 1 .. v_given loop
        -- A value that begins with an n is null.
        if ascii(dbms_lob.substr(p_results, 1, v_firsts(i))) = ascii('n') then
            continue;
        end if;
        p_values(i) := null;
        dbms_lob.createtemporary(p_values(i), true, dbms_lob.call);
        dbms_lob.copy(p_values(i), p_results, v_lengths(i), 1, v_firsts(i));
        -- A length in a CLOB counts an emoji as two. Counting it as one takes long, so do it only
        -- where the result seems too long.
        if v_lengths(i) > c_longest then
            if internal_text_length(p_values(i)) > c_longest then
                internal_refuse(
                    'a result is longer than ' || internal_number_text(c_longest) || ' characters'
                );
            end if;
        end if;
    end loop;
end internal_read_results;
