drop procedure if exists rowq.internal_next_cron;

delimiter //
create procedure rowq.internal_next_cron(
    p_bits varchar(136),
    p_time_zone varchar(64),
    p_after datetime(6),
    out p_moment datetime(6)
)
sql security definer
modifies sql data
begin
-- routine   internal_next_cron
-- purpose   Return the first moment after p_after that a parsed cron expression names; null where the next ten years have none.
-- promise   P31
-- errors    RQ711
-- differs   time zones other than UTC end with the year 2037, as the server's tables of them do
    declare v_end datetime(6) default '2038-01-01';
    declare v_minute datetime(6) default date_format(p_after, '%Y-%m-%d %H:%i:00');
    declare v_from datetime(6) default v_minute + interval 1 minute;
    declare v_local, v_next, v_moment, v_change, v_horizon datetime(6);
    set p_moment = null;

    -- Look again, because the server may have lost its tables of time zones since the schedule was
    -- made, and convert_tz returns null then.
    call rowq.internal_check_time_zone(p_time_zone);
    if p_time_zone = 'UTC' then
        call rowq.internal_next_cron_local(p_bits, v_from, p_moment);
    elseif p_after < v_end and substr(p_bits, 135, 1) = '1' then
        -- A minute and an hour that are given fire once for each local time.
        set v_next = convert_tz(v_minute, '+00:00', p_time_zone);
        times: loop
            set v_local = v_next + interval 1 minute;
            call rowq.internal_next_cron_local(p_bits, v_local, v_next);
            if v_next is null or v_next >= v_end + interval 1 day then
                leave times;
            end if;
            call rowq.internal_moment_of_local(v_next, p_time_zone, v_moment);
            if v_moment > p_after then
                set p_moment = v_moment;
                leave times;
            end if;
        end loop;
    elseif p_after < v_end then
        -- Any other one fires in each hour that there is, also in one that the clocks show twice. A
        -- time is as far away as the clocks say unless they are changed on the way. The look for
        -- that goes no further than a day, because local times that do not match are none later
        -- either.
        moments: loop
            set v_local = convert_tz(v_from, '+00:00', p_time_zone);
            call rowq.internal_next_cron_local(p_bits, v_local, v_next);
            if v_next is null or v_next >= v_end + interval 1 day then
                leave moments;
            end if;
            set v_moment = v_from + interval timestampdiff(minute, v_local, v_next) minute,
                v_horizon = v_from + interval 26 hour;
            call rowq.internal_offset_change(
                v_from, least(v_moment, v_horizon), p_time_zone, v_change
            );
            if v_change is not null then
                set v_from = v_change;
            elseif v_moment <= v_horizon then
                set p_moment = v_moment;
                leave moments;
            else
                set v_from = greatest(v_horizon, v_moment - interval 26 hour);
            end if;
        end loop;
    end if;
    if p_moment >= v_end and p_time_zone <> 'UTC' then
        set p_moment = null;
    end if;
end//
delimiter ;
