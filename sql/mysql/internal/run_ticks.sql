drop procedure if exists rowq.internal_run_ticks;

delimiter //
create procedure rowq.internal_run_ticks(
    p_part_id int,
    p_schedule_name varbinary(400),
    p_refusal longtext,
    p_is_late boolean,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_run_ticks
-- purpose   Add the messages of a schedule's due ticks, a hundred at most, and move it on; with p_refusal, why they cannot be added, add none and note it. p_is_late is as for internal_send_tick.
-- promise   P30 P31
-- locks     the schedule row, passed over when locked; as internal_send_tick
-- errors    RQ711
-- differs   elsewhere internal_run_due does this
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_late datetime(6) default v_now - interval 60 second;
    declare v_tick, v_starts_at, v_ends_at datetime(6);
    declare v_interval_seconds double;
    declare v_cron varchar(200);
    declare v_bits varchar(136);
    declare v_time_zone, v_missed, v_outcome varchar(64);
    declare v_error longtext default p_refusal;
    declare v_message_id, v_last_id bigint;
    declare v_count int default 0;
    -- Where the server has lost its tables of time zones, the next tick is not known, so that this
    -- one stays due.
    declare continue handler for sqlstate '45711'
    begin
        if p_refusal is null then
            resignal;
        end if;
    end;

    select s.next_run_at, s.cron, s.interval_seconds, s.time_zone, s.missed, s.starts_at, s.ends_at
    into v_tick, v_cron, v_interval_seconds, v_time_zone, v_missed, v_starts_at, v_ends_at
    from rowq.schedule s force index (primary)
    where s.part_id = p_part_id
      and s.schedule_name = p_schedule_name
      and s.next_run_at <= v_now
    for update skip locked;

    if v_tick is not null then
        if v_cron is not null then
            call rowq.internal_parse_cron(v_cron, v_bits);
        end if;
        if p_refusal is not null then
            call rowq.internal_next_tick(
                v_bits, v_interval_seconds, v_time_zone, v_starts_at, v_ends_at, v_now, v_tick
            );
            set v_count = 100;
        end if;
        while v_tick <= v_now and v_count < 100 do
            if v_tick < v_late and v_missed = 'skip' then
                call rowq.internal_next_tick(
                    v_bits, v_interval_seconds, v_time_zone, v_starts_at, v_ends_at, v_late, v_tick
                );
            else
                call rowq.internal_send_tick(
                    p_part_id, p_schedule_name, v_tick, p_is_late, p_owns_transaction,
                    v_message_id, v_outcome
                );
                set v_error = null, v_count = v_count + 1;
                if v_outcome = 'enqueued' then
                    set v_last_id = v_message_id;
                else
                    set v_error = concat(
                        'message ', v_message_id, ' of an earlier tick has not ended'
                    );
                end if;
                call rowq.internal_next_tick(
                    v_bits, v_interval_seconds, v_time_zone, v_starts_at, v_ends_at,
                    if(v_tick < v_late and v_missed = 'once', v_now, v_tick), v_tick
                );
            end if;
        end while;

        update rowq.schedule s
        set s.next_run_at     = v_tick,
            s.last_run_at     = if(v_last_id is null, s.last_run_at, v_now),
            s.last_message_id = coalesce(v_last_id, s.last_message_id),
            s.last_error      = left(v_error, 2000)
        where s.part_id = p_part_id
          and s.schedule_name = p_schedule_name;
    end if;
end//
delimiter ;
