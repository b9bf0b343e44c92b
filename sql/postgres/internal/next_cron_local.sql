create or replace function rowq.internal_next_cron_local(
    p_bits text,
    p_from timestamp without time zone
)
returns timestamp without time zone
language plpgsql
immutable
as $$
-- routine   internal_next_cron_local
-- purpose   Return the first minute from p_from on, in local time, that a parsed cron expression names; null where the next ten years have none.
declare
    c_end        constant date := p_from::date + 3660;
    v_day        date := p_from::date;
    v_hour       integer := extract(hour from p_from);
    v_minute     integer := extract(minute from p_from);
    v_is_day     boolean;
    v_is_weekday boolean;
    v_steps      integer;
begin
    while v_day < c_end loop
        if substr(p_bits, 115 + extract(month from v_day)::integer, 1) = '0' then
            v_day := date_trunc('month', v_day::timestamp) + interval '1 month';
        else
            v_is_day := substr(p_bits, 84 + extract(day from v_day)::integer, 1) = '1';
            v_is_weekday := substr(p_bits, 128 + extract(dow from v_day)::integer, 1) = '1';
            if v_is_day and v_is_weekday
               or (v_is_day or v_is_weekday) and substr(p_bits, 136, 1) = '1' then
                -- Look for the first hour, and in that hour for the first minute.
                while v_hour < 24 loop
                    v_steps := strpos(substr(p_bits, 61 + v_hour, 24 - v_hour), '1');
                    exit when v_steps = 0;
                    if v_steps > 1 then
                        v_hour := v_hour + v_steps - 1;
                        v_minute := 0;
                    end if;
                    v_steps := strpos(substr(p_bits, 1 + v_minute, 60 - v_minute), '1');
                    if v_steps > 0 then
                        return v_day + make_interval(
                            hours => v_hour, mins => v_minute + v_steps - 1
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
end;
$$;
