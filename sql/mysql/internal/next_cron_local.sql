drop procedure if exists rowq.internal_next_cron_local;

delimiter //
create procedure rowq.internal_next_cron_local(
    p_bits varchar(136),
    p_from datetime(6),
    out p_local datetime(6)
)
sql security definer
no sql
begin
-- routine   internal_next_cron_local
-- purpose   Return the first minute from p_from on, in local time, that a parsed cron expression names; null where the next ten years have none.
    declare v_day date default date(p_from);
    declare v_end date default v_day + interval 3660 day;
    declare v_hour int default hour(p_from);
    declare v_minute int default minute(p_from);
    declare v_day_bit, v_weekday_bit char(1);
    declare v_found int;
    set p_local = null;

    days: while v_day < v_end do
        if substr(p_bits, 115 + month(v_day), 1) = '0' then
            set v_day = last_day(v_day) + interval 1 day;
        else
            set v_day_bit = substr(p_bits, 84 + dayofmonth(v_day), 1),
                v_weekday_bit = substr(p_bits, 127 + dayofweek(v_day), 1);
            if '1' = if(
                right(p_bits, 1) = '1',
                greatest(v_day_bit, v_weekday_bit), least(v_day_bit, v_weekday_bit)
            ) then
                -- Look for the first hour, and in that hour for the first minute.
                hours: while v_hour < 24 do
                    set v_found = locate('1', p_bits, 61 + v_hour);
                    if v_found not between 1 and 84 then
                        leave hours;
                    end if;
                    if v_found > 61 + v_hour then
                        set v_hour = v_found - 61, v_minute = 0;
                    end if;
                    set v_found = locate('1', p_bits, 1 + v_minute);
                    if v_found between 1 and 60 then
                        set p_local = v_day + interval (v_hour * 60 + v_found - 1) minute;
                        leave days;
                    end if;
                    set v_hour = v_hour + 1, v_minute = 0;
                end while;
            end if;
            set v_day = v_day + interval 1 day;
        end if;
        set v_hour = 0, v_minute = 0;
    end while;
end//
delimiter ;
