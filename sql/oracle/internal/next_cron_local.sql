function internal_next_cron_local(p_bits in varchar2, p_from in timestamp)
return timestamp
is
-- routine   internal_next_cron_local
-- purpose   Return the first minute from p_from on, in local time, that a parsed cron expression names; null where the next ten years have none.
    v_day        date := trunc(p_from, 'dd');
    v_end        constant date := v_day + 3660;
    v_hour       pls_integer := extract(hour from p_from);
    v_minute     pls_integer := extract(minute from p_from);
    v_weekday    pls_integer;
    v_is_day     boolean;
    v_is_weekday boolean;
    v_steps      pls_integer;
begin
    while v_day < v_end loop
        if substr(p_bits, 115 + extract(month from v_day), 1) = '0' then
            v_day := add_months(trunc(v_day, 'mm'), 1);
        else
            v_is_day := substr(p_bits, 84 + extract(day from v_day), 1) = '1';
            -- A week of ISO begins on Monday, whatever the session's territory; Sunday is 0 here.
            v_weekday := mod(v_day - trunc(v_day, 'iw') + 1, 7);
            v_is_weekday := substr(p_bits, 128 + v_weekday, 1) = '1';
            if v_is_day and v_is_weekday
               or substr(p_bits, 136, 1) = '1' and (v_is_day or v_is_weekday) then
                -- Look for the first hour, and in that hour for the first minute.
                while v_hour < 24 loop
                    v_steps := instr(substr(p_bits, 61 + v_hour, 24 - v_hour), '1');
                    exit when v_steps = 0;
                    if v_steps > 1 then
                        v_hour := v_hour + v_steps - 1;
                        v_minute := 0;
                    end if;
                    v_steps := instr(substr(p_bits, 1 + v_minute, 60 - v_minute), '1');
                    if v_steps > 0 then
                        return cast(v_day as timestamp) + numtodsinterval(
                            v_hour * 60 + v_minute + v_steps - 1, 'minute'
                        );
                    end if;
                    v_hour := v_hour + 1;
                    v_minute := 0;
                end loop;
            end if;
            v_day := v_day + 1;
        end if;
        v_hour := 0;
        v_minute := 0;
    end loop;
    return null;
end internal_next_cron_local;
