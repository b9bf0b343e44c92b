drop procedure if exists rowq.internal_parse_cron;

delimiter //
create procedure rowq.internal_parse_cron(p_cron longtext, out p_bits varchar(136))
sql security definer
modifies sql data
begin
-- routine   internal_parse_cron
-- purpose   Turn a cron expression into a text of 0 and 1: 60 for minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday on, one for a minute and an hour that are given, one for a day and a weekday that are both given.
-- promise   P15
-- errors    RQ711
    -- Bytes are compared, because collations ignore trailing blanks, and the pattern means the same
    -- whatever default_regex_flags says.
    declare v_text varchar(201) default trim(
        regexp_replace(
            case cast(lower(left(p_cron, 201)) as binary)
                when '@hourly' then '0 * * * *'
                when '@daily' then '0 0 * * *'
                when '@midnight' then '0 0 * * *'
                when '@weekly' then '0 0 * * 0'
                when '@monthly' then '0 0 1 * *'
                when '@yearly' then '0 0 1 1 *'
                when '@annually' then '0 0 1 1 *'
                else left(p_cron, 201)
            end,
            '[\\x20\\t]++', ' '
        )
    );
    declare v_minute, v_hour, v_day, v_month, v_weekday varchar(200);
    declare v_minutes, v_hours, v_days, v_months, v_weekdays varchar(60);

    if char_length(v_text) - char_length(replace(v_text, ' ', '')) <> 4
       or char_length(p_cron) > 200 then
        call rowq.internal_refuse(
            concat(
                'cron must be five fields (minute, hour, day, month, weekday) or a word such as ',
                '@daily, got ', left(p_cron, 60)
            )
        );
    end if;
    set v_minute = substring_index(v_text, ' ', 1),
        v_hour = substring_index(substring_index(v_text, ' ', 2), ' ', -1),
        v_day = substring_index(substring_index(v_text, ' ', 3), ' ', -1),
        v_month = substring_index(substring_index(v_text, ' ', -2), ' ', 1),
        v_weekday = substring_index(v_text, ' ', -1);
    call rowq.internal_parse_cron_field(v_minute, 'minute', 0, 59, null, v_minutes);
    call rowq.internal_parse_cron_field(v_hour, 'hour', 0, 23, null, v_hours);
    call rowq.internal_parse_cron_field(v_day, 'day', 1, 31, null, v_days);
    call rowq.internal_parse_cron_field(
        v_month, 'month', 1, 12, 'jan feb mar apr may jun jul aug sep oct nov dec ', v_months
    );
    -- Sunday is 0 and 7.
    call rowq.internal_parse_cron_field(
        v_weekday, 'weekday', 0, 7, 'sun mon tue wed thu fri sat ', v_weekdays
    );
    set p_bits = concat(
        v_minutes, v_hours, v_days, v_months,
        greatest(left(v_weekdays, 1), right(v_weekdays, 1)), substr(v_weekdays, 2, 6),
        if(left(v_minute, 1) = '*' or left(v_hour, 1) = '*', '0', '1'),
        if(left(v_day, 1) = '*' or left(v_weekday, 1) = '*', '0', '1')
    );
end//
delimiter ;
