function internal_parse_cron_field(
    p_field in varchar2,
    p_name  in varchar2,
    p_low   in number,
    p_high  in number,
    p_words in varchar2 default null
)
return varchar2
is
-- routine   internal_parse_cron_field
-- purpose   Turn a field of a cron expression into a text of 0 and 1, one for each value from p_low on. p_words are names of three letters for these values.
-- promise   P15
-- errors    RQ711
    v_rest  varchar2(1000 char) := lower(p_field) || ',';
    v_item  varchar2(1000 char);
    v_range varchar2(1000 char);
    v_slash pls_integer;
    v_dash  pls_integer;
    v_first number;
    v_last  number;
    v_step  number;
    v_bits  varchar2(60 char) := rpad('0', p_high - p_low + 1, '0');

    -- A value or a step is one or two digits. Compare the codes of characters, because a session
    -- can have its own order (NLS_SORT).
    function number_of(p_text in varchar2)
    return number
    is
        v_number number := 0;
    begin
        if p_text is null or length(p_text) > 2 then
            return null;
        end if;
        for i in 1 .. length(p_text) loop
            if ascii(substr(p_text, i, 1)) not between ascii('0') and ascii('9') then
                return null;
            end if;
            v_number := v_number * 10 + ascii(substr(p_text, i, 1)) - ascii('0');
        end loop;
        return v_number;
    end number_of;

    function value_of(p_text in varchar2)
    return number
    is
        v_place pls_integer;
    begin
        if p_text is null or length(p_text) <> 3 then
            return number_of(p_text);
        end if;
        for i in 1 .. 3 loop
            if ascii(substr(p_text, i, 1)) not between ascii('a') and ascii('z') then
                return null;
            end if;
        end loop;
        v_place := instr(p_words, p_text);
        return case when mod(v_place, 4) = 1 then p_low + trunc(v_place / 4) end;
    end value_of;
begin
    while v_rest is not null loop
        v_item := substr(v_rest, 1, instr(v_rest, ',') - 1);
        v_rest := substr(v_rest, instr(v_rest, ',') + 1);
        v_slash := coalesce(instr(v_item, '/'), 0);
        v_range := case when v_slash > 0 then substr(v_item, 1, v_slash - 1) else v_item end;
        v_step := case when v_slash > 0 then number_of(substr(v_item, v_slash + 1)) else 1 end;
        v_dash := coalesce(instr(v_range, '-'), 0);
        if ascii(v_range) = ascii('*') and length(v_range) = 1 then
            v_first := p_low;
            v_last := p_high;
        elsif v_dash > 0 then
            v_first := value_of(substr(v_range, 1, v_dash - 1));
            v_last := value_of(substr(v_range, v_dash + 1));
        else
            v_first := value_of(v_range);
            v_last := case when v_slash > 0 then p_high else v_first end;
        end if;
        if v_first is null
           or v_last is null
           or v_step is null
           or v_step = 0
           or v_first < p_low
           or v_last > p_high
           or v_first > v_last then
            internal_refuse(
                'the ' || p_name || ' of cron must be *, values from '
                || internal_number_text(p_low) || ' to ' || internal_number_text(p_high)
                || ', ranges or steps of these, got ' || substr(p_field, 1, 60)
            );
        end if;
        while v_first <= v_last loop
            v_bits := substr(v_bits, 1, v_first - p_low) || '1'
                || substr(v_bits, v_first - p_low + 2);
            v_first := v_first + v_step;
        end loop;
    end loop;
    return v_bits;
end internal_parse_cron_field;
