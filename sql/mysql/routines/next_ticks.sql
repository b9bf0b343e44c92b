drop procedure if exists rowq.next_ticks;

delimiter //
create procedure rowq.next_ticks(
    p_cron longtext,
    p_interval_seconds double,
    p_time_zone longtext,
    p_after datetime(6),
    p_max_ticks int
)
sql security definer
modifies sql data
comment 'Compute the next run times of a schedule before it is created.'
begin
-- routine   next_ticks
-- version   1
-- purpose   Compute the next run times of a schedule before it is created.
-- promise   P31
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   time zones as in create_schedule
    declare v_after, v_tick datetime(6);
    declare v_time_zone longtext default coalesce(p_time_zone, 'UTC');
    declare v_max_ticks int default coalesce(p_max_ticks, 5);
    declare v_bits varchar(136);
    declare v_ticks longtext;
    declare v_count int default 0;
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    if (p_cron is null) = (p_interval_seconds is null) then
        call rowq.internal_refuse('exactly one of cron and interval_seconds is required');
    end if;
    call rowq.internal_check_range('interval_seconds', p_interval_seconds, 1, 315360000);
    call rowq.internal_check_time_zone(v_time_zone);
    call rowq.internal_check_range('max_ticks', v_max_ticks, 1, 1000);
    set v_after = coalesce(p_after, utc_timestamp(6));
    if v_after not between timestamp'2000-01-01 00:00:00' and timestamp'2100-01-01 00:00:00' then
        call rowq.internal_refuse('after must be between the years 2000 and 2100');
    end if;
    if p_cron is not null then
        call rowq.internal_parse_cron(p_cron, v_bits);
    end if;

    set v_tick = v_after;
    ticks: while v_count < v_max_ticks do
        call rowq.internal_next_tick(
            v_bits, p_interval_seconds, v_time_zone, v_after, null, null, v_tick, v_tick
        );
        if v_tick is null then
            leave ticks;
        end if;
        set v_ticks = concat_ws(',', v_ticks, concat('"', v_tick, '"')), v_count = v_count + 1;
    end while;

    select j.tick
    from json_table(
        concat('[', coalesce(v_ticks, ''), ']'),
        '$[*]' columns (position for ordinality, tick datetime(6) path '$')
    ) j
    order by j.position;

    call rowq.internal_restore_session();
end//
delimiter ;
