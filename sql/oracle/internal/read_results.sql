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
    c_blanks  constant varchar2(4 char) := chr(9) || chr(10) || chr(13) || chr(32);
    v_cuts    t_numbers;
    v_fault   varchar2(32767);
    v_length  number;
    v_value   clob;
    v_values  t_clobs;
begin
    p_values.delete;
    if p_queue.result_seconds = 0 then
        internal_refuse('the queue keeps no results: its result_seconds is 0');
    end if;
    internal_json_fault('results', p_results, 'array', 21, null, v_cuts, v_fault);
    if v_fault is not null then
        internal_refuse(v_fault);
    end if;

    for i in 1 .. v_cuts.count - 1 loop
        v_length := v_cuts(i + 1) - v_cuts(i) - 1;
        if v_length > 0 then
            dbms_lob.createtemporary(v_value, true, dbms_lob.call);
            dbms_lob.copy(v_value, p_results, v_length, 1, v_cuts(i) + 1);
            v_value := ltrim(rtrim(v_value, c_blanks), c_blanks);
            -- Only an array without any value has nothing but blanks between two cuts.
            if coalesce(dbms_lob.getlength(v_value), 0) > 0 then
                v_values(v_values.count + 1) := v_value;
            end if;
        end if;
    end loop;
    if v_values.count <> p_count then
        internal_refuse(
            'results are ' || internal_number_text(v_values.count) || ', and message_ids are '
            || internal_number_text(p_count)
        );
    end if;

    for i in 1 .. v_values.count loop
        -- getlength counts an emoji as two. Counting it as one takes long, so do it only where the
        -- result seems too long.
        if dbms_lob.getlength(v_values(i)) > c_longest then
            if internal_text_length(v_values(i)) > c_longest then
                internal_refuse(
                    'a result is longer than ' || internal_number_text(c_longest) || ' characters'
                );
            end if;
        end if;
        -- A value that begins with an n is null.
        if ascii(dbms_lob.substr(v_values(i), 1, 1)) = ascii('n') then
            continue;
        end if;
        p_values(i) := v_values(i);
    end loop;
end internal_read_results;
