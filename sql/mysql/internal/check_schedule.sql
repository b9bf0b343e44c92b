drop procedure if exists rowq.internal_check_schedule;

delimiter //
create procedure rowq.internal_check_schedule(
    p_part_id int,
    p_schedule_name longtext,
    p_cron longtext,
    p_interval_seconds double,
    p_time_zone longtext,
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_max_attempts int,
    p_group_key longtext,
    p_missed longtext,
    p_starts_at datetime(6),
    p_ends_at datetime(6),
    out p_next_run_at datetime(6)
)
sql security definer
modifies sql data
begin
-- routine   internal_check_schedule
-- purpose   Refuse a schedule with a bad name, time or message, or without a tick to come; return its first tick.
-- promise   P15
-- errors    RQ711
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_first datetime(6) default '2000-01-01';
    declare v_last datetime(6) default '2100-01-01';
    declare v_fault varchar(120);
    declare v_bits varchar(136);
    declare v_merged longtext;
    declare v_max_body_length int;

    call rowq.internal_check_name('schedule_name', p_schedule_name);
    set v_fault = case
        when (p_cron is null) = (p_interval_seconds is null)
            then 'a schedule has either cron or interval_seconds'
        when cast(p_missed as binary) not in ('skip', 'once', 'all')
            then concat('missed must be skip, once or all, got ', left(p_missed, 40))
        when p_starts_at not between v_first and v_last
             or p_ends_at not between v_first and v_last
            then 'starts_at and ends_at must be moments between the years 2000 and 2100'
    end;
    if v_fault is null then
        select q.max_body_length into v_max_body_length
        from rowq.queue q
        where q.part_id = p_part_id;
        call rowq.internal_message_fault(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, null, null, null,
            p_max_attempts, p_group_key, null, null, null, v_max_body_length, v_fault
        );
    end if;
    if v_fault is null then
        call rowq.internal_tick_headers(p_schedule_name, p_headers, v_now, v_merged);
        call rowq.internal_json_fault('headers', v_merged, 'OBJECT', 20, 65536, v_fault);
    end if;
    if v_fault is not null then
        call rowq.internal_refuse(v_fault);
    end if;

    call rowq.internal_check_range('interval_seconds', p_interval_seconds, 1, 315360000);
    call rowq.internal_check_time_zone(p_time_zone);
    if p_cron is not null then
        call rowq.internal_parse_cron(p_cron, v_bits);
    end if;
    call rowq.internal_next_tick(
        v_bits, p_interval_seconds, p_time_zone, p_starts_at, p_ends_at, v_now, p_next_run_at
    );
    if p_next_run_at is null then
        call rowq.internal_refuse(
            'the schedule has no tick within ten years or before ends_at'
        );
    end if;
end//
delimiter ;
