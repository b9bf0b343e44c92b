drop procedure if exists rowq.internal_moment_of_local;

delimiter //
create procedure rowq.internal_moment_of_local(
    p_local datetime(6),
    p_time_zone varchar(64),
    out p_moment datetime(6)
)
sql security definer
no sql
begin
-- routine   internal_moment_of_local
-- purpose   Return when the clocks of a time zone show a time: the first of two moments where they are set back over it, and the end of the gap where they are set forward over it.
    -- convert_tz is asked for local times only, because a moment has one, and a local time may have
    -- two moments or none.
    declare v_day_before datetime(6) default p_local - interval 1 day;
    declare v_day_after datetime(6) default p_local + interval 1 day;
    -- The moment by the offset of the day before, and by that of the day after.
    declare v_before datetime(6) default p_local - interval timestampdiff(
        minute, v_day_before, convert_tz(v_day_before, '+00:00', p_time_zone)
    ) minute;
    declare v_after datetime(6);

    if convert_tz(v_before, '+00:00', p_time_zone) = p_local then
        set p_moment = v_before;
    else
        set v_after = p_local - interval timestampdiff(
            minute, v_day_after, convert_tz(v_day_after, '+00:00', p_time_zone)
        ) minute;
        if convert_tz(v_after, '+00:00', p_time_zone) = p_local then
            set p_moment = v_after;
        else
            call rowq.internal_offset_change(
                least(v_before, v_after), greatest(v_before, v_after), p_time_zone, p_moment
            );
        end if;
    end if;
end//
delimiter ;
