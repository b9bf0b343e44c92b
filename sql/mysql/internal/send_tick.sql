drop procedure if exists rowq.internal_send_tick;

delimiter //
create procedure rowq.internal_send_tick(
    p_part_id int,
    p_schedule_name varbinary(400),
    p_tick datetime(6),
    p_is_late boolean,
    p_owns_transaction boolean,
    out p_message_id bigint,
    out p_outcome varchar(20)
)
sql security definer
modifies sql data
begin
-- routine   internal_send_tick
-- purpose   Add the message of a schedule, whose row the caller holds, to its queue; the outcome is enqueue's. p_is_late lets it join its group when it is promoted.
-- promise   P30
-- locks     as internal_store and internal_store_grouped
-- errors    RQ711
-- differs   elsewhere it calls enqueue, which returns a result here
    declare v_body, v_headers, v_merged, v_dedup_key, v_group_key, v_name longtext;
    declare v_body_binary longblob;
    declare v_message_type, v_joining varchar(2000);
    declare v_priority, v_max_attempts, v_max_body_length int;
    declare v_is_failed boolean;
    declare v_fault varchar(120);
    declare v_now datetime(6) default utc_timestamp(6);

    select q.max_body_length into v_max_body_length
    from rowq.queue q
    where q.part_id = p_part_id;
    -- Read with a lock, because an old snapshot shows the schedule as it was.
    select convert(s.schedule_name using utf8mb4), s.body, s.body_binary, s.message_type,
           s.headers, s.priority, s.max_attempts, convert(s.group_key using utf8mb4),
           if(s.overlap, null, concat('schedule:', convert(s.schedule_name using utf8mb4)))
    into v_name, v_body, v_body_binary, v_message_type, v_headers, v_priority, v_max_attempts,
         v_group_key, v_dedup_key
    from rowq.schedule s force index (primary)
    where s.part_id = p_part_id
      and s.schedule_name = p_schedule_name
    for update;

    call rowq.internal_tick_headers(v_name, v_headers, p_tick, v_merged);
    -- Enqueue refuses keys of schedules, so that no producer can stop one by its key.
    call rowq.internal_message_fault(
        v_body, v_body_binary, v_message_type, v_merged, v_priority, null, null, null,
        v_max_attempts, v_group_key, null, null, null, v_max_body_length, v_fault
    );
    if v_fault is not null then
        call rowq.internal_refuse(v_fault);
    end if;
    call rowq.internal_store(
        p_part_id, 0, v_now, v_body, v_body_binary, v_message_type, v_merged, v_priority,
        if(p_is_late and v_group_key is not null, v_now + interval 1000 microsecond, null),
        v_dedup_key, v_max_attempts, v_group_key, null, null, null, null, p_owns_transaction,
        p_message_id, p_outcome, v_joining, v_is_failed
    );
    if v_joining is not null then
        call rowq.internal_store_grouped(p_part_id, concat('[', v_joining, ']'));
    end if;
end//
delimiter ;
