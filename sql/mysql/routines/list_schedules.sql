drop procedure if exists rowq.list_schedules;

delimiter //
create procedure rowq.list_schedules(p_queue_name longtext)
sql security definer
modifies sql data
comment 'List the schedules of one queue or all, without bodies and headers.'
begin
-- routine   list_schedules
-- version   1
-- purpose   List the schedules of one queue or all, without bodies and headers.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    declare v_queue_id int;
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    if p_queue_name is not null then
        call rowq.internal_require_queue(p_queue_name, v_queue_id);
    end if;

    select convert(q.queue_name using utf8mb4) as queue_name,
           convert(s.schedule_name using utf8mb4) as schedule_name, s.cron, s.interval_seconds,
           s.time_zone, s.is_paused, s.next_run_at, s.last_run_at, s.last_message_id,
           s.last_error, s.missed, s.overlap, s.starts_at, s.ends_at, s.message_type, s.priority,
           s.max_attempts, convert(s.group_key using utf8mb4) as group_key, s.counts_from
    from rowq.queue q
    straight_join rowq.schedule s force index (primary) on s.queue_id = q.queue_id
    where q.queue_id = v_queue_id
       or p_queue_name is null
    order by q.queue_name, s.schedule_name;

    call rowq.internal_restore_session();
end//
delimiter ;
