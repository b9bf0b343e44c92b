create or replace function rowq.internal_parse_cron(p_cron text)
returns text
language plpgsql
immutable
as $$
-- routine   internal_parse_cron
-- purpose   Turn a cron expression into a text of 0 and 1: 60 for minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday on, one for a minute and an hour that are given, one for a day and a weekday that are both given.
-- promise   P15
-- errors    RQ711
declare
    v_fields   text[];
    v_weekdays text;
begin
    v_fields := regexp_split_to_array(
        btrim(
            case lower(left(p_cron, 201) collate "C")
                when '@hourly' then '0 * * * *'
                when '@daily' then '0 0 * * *'
                when '@midnight' then '0 0 * * *'
                when '@weekly' then '0 0 * * 0'
                when '@monthly' then '0 0 1 * *'
                when '@yearly' then '0 0 1 1 *'
                when '@annually' then '0 0 1 1 *'
                else left(p_cron, 201)
            end,
            E' \t'
        ),
        '[ \t]+'
    );
    if cardinality(v_fields) <> 5 or char_length(p_cron) > 200 then
        raise exception 'RQ711 invalid_argument: cron must be five fields (minute, hour, day, '
            'month, weekday) or a word such as @daily, got %', left(p_cron, 60)
            using errcode = 'RQ711';
    end if;
    -- Sunday is 0 and 7.
    v_weekdays := rowq.internal_parse_cron_field(
        v_fields[5], 'weekday', 0, 7, 'sun mon tue wed thu fri sat '
    );
    return rowq.internal_parse_cron_field(v_fields[1], 'minute', 0, 59)
        || rowq.internal_parse_cron_field(v_fields[2], 'hour', 0, 23)
        || rowq.internal_parse_cron_field(v_fields[3], 'day', 1, 31)
        || rowq.internal_parse_cron_field(
            v_fields[4], 'month', 1, 12, 'jan feb mar apr may jun jul aug sep oct nov dec '
        )
        || greatest(left(v_weekdays, 1), right(v_weekdays, 1))
        || substr(v_weekdays, 2, 6)
        || case when v_fields[1] like '*%' or v_fields[2] like '*%' then '0' else '1' end
        || case when v_fields[3] like '*%' or v_fields[5] like '*%' then '0' else '1' end;
end;
$$;
