drop procedure if exists rowq.internal_offset_change;

delimiter //
create procedure rowq.internal_offset_change(
    p_from datetime(6),
    p_to datetime(6),
    p_time_zone varchar(64),
    out p_change datetime(6)
)
sql security definer
no sql
begin
-- routine   internal_offset_change
-- purpose   Return the first moment after p_from, up to p_to, when the clocks of a time zone were changed; null where they were not. Both moments are whole minutes at most two days apart.
    declare v_offset int default
        timestampdiff(minute, p_from, convert_tz(p_from, '+00:00', p_time_zone));
    declare v_low datetime(6) default p_from;
    declare v_middle datetime(6);
    set p_change = null;

    if timestampdiff(minute, p_to, convert_tz(p_to, '+00:00', p_time_zone)) <> v_offset then
        set p_change = p_to;
        while timestampdiff(minute, v_low, p_change) > 1 do
            set v_middle = v_low + interval timestampdiff(minute, v_low, p_change) div 2 minute;
            if timestampdiff(
                minute, v_middle, convert_tz(v_middle, '+00:00', p_time_zone)
            ) = v_offset then
                set v_low = v_middle;
            else
                set p_change = v_middle;
            end if;
        end while;
    end if;
end//
delimiter ;
