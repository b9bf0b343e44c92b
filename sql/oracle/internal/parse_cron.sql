function internal_parse_cron(p_cron in varchar2)
return varchar2
is
-- routine   internal_parse_cron
-- purpose   Turn a cron expression into a text of 0 and 1: 60 for minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday on, one for a minute and an hour that are given, one for a day and a weekday that are both given.
-- promise   P15
-- errors    RQ711
    c_star constant pls_integer := ascii('*');
    v_word     raw(800);
    v_rest     varchar2(200 char);
    v_blank    pls_integer;
    v_fields   t_texts;
    v_weekdays varchar2(8 char);
begin
    if length(p_cron) <= 200 then
        -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
        v_word := utl_raw.cast_to_raw(lower(p_cron));
        v_rest := trim(
            replace(
                case
                    when v_word = utl_raw.cast_to_raw('@hourly') then '0 * * * *'
                    when v_word = utl_raw.cast_to_raw('@daily') then '0 0 * * *'
                    when v_word = utl_raw.cast_to_raw('@midnight') then '0 0 * * *'
                    when v_word = utl_raw.cast_to_raw('@weekly') then '0 0 * * 0'
                    when v_word = utl_raw.cast_to_raw('@monthly') then '0 0 1 * *'
                    when v_word = utl_raw.cast_to_raw('@yearly') then '0 0 1 1 *'
                    when v_word = utl_raw.cast_to_raw('@annually') then '0 0 1 1 *'
                    else p_cron
                end,
                chr(9), chr(32)
            )
        );
    end if;
    while v_rest is not null loop
        v_blank := instr(v_rest || chr(32), chr(32));
        v_fields(v_fields.count + 1) := substr(v_rest, 1, v_blank - 1);
        v_rest := ltrim(substr(v_rest, v_blank));
    end loop;
    if v_fields.count <> 5 then
        internal_refuse(
            'cron must be five fields (minute, hour, day, month, weekday) or a word such as'
            || ' @daily, got ' || substr(p_cron, 1, 60)
        );
    end if;

    -- Sunday is 0 and 7.
    v_weekdays := internal_parse_cron_field(
        v_fields(5), 'weekday', 0, 7, 'sun mon tue wed thu fri sat '
    );
    return internal_parse_cron_field(v_fields(1), 'minute', 0, 59)
        || internal_parse_cron_field(v_fields(2), 'hour', 0, 23)
        || internal_parse_cron_field(v_fields(3), 'day', 1, 31)
        || internal_parse_cron_field(
            v_fields(4), 'month', 1, 12, 'jan feb mar apr may jun jul aug sep oct nov dec '
        )
        || case
            when substr(v_weekdays, 8, 1) = '1' then '1'
            else substr(v_weekdays, 1, 1)
        end
        || substr(v_weekdays, 2, 6)
        || case
            when ascii(v_fields(1)) = c_star or ascii(v_fields(2)) = c_star then '0'
            else '1'
        end
        || case
            when ascii(v_fields(3)) = c_star or ascii(v_fields(5)) = c_star then '0'
            else '1'
        end;
end internal_parse_cron;
