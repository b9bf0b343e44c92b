drop procedure if exists rowq.internal_next_tick;

delimiter //
create procedure rowq.internal_next_tick(
    p_bits varchar(136),
    p_interval_seconds double,
    p_time_zone varchar(64),
    p_starts_at datetime(6),
    p_ends_at datetime(6),
    p_after datetime(6),
    out p_tick datetime(6)
)
sql security definer
modifies sql data
begin
-- routine   internal_next_tick
-- purpose   Return the first tick of a schedule after a moment; null where there is none. p_bits is its parsed cron expression, or null.
-- promise   P31
-- errors    RQ711
    declare v_after datetime(6) default greatest(p_after, p_starts_at - interval 1 microsecond);
    declare v_step, v_passed bigint;

    if p_bits is not null then
        call rowq.internal_next_cron(p_bits, p_time_zone, v_after, p_tick);
    else
        -- Count in microseconds from starts_at, so that the ticks do not drift.
        set v_step = round(p_interval_seconds * 1000000),
            v_passed = timestampdiff(microsecond, p_starts_at, v_after);
        set v_passed = if(v_passed < 0, 0, (v_passed div v_step + 1) * v_step);
        -- The type ends with the year 9999.
        set p_tick = if(
            timestampdiff(microsecond, '1970-01-01', p_starts_at) + v_passed < 253402214400000000,
            p_starts_at + interval v_passed microsecond, null
        );
    end if;
    if p_tick > p_ends_at then
        set p_tick = null;
    end if;
end//
delimiter ;
