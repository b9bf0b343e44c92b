drop procedure if exists rowq.list_delayed;

delimiter //
create procedure rowq.list_delayed(
    p_queue_name longtext,
    p_after_due_at datetime(6),
    p_after_message_id bigint,
    p_max_messages int
)
sql security definer
modifies sql data
comment 'List delayed messages in the order in which they become due, without bodies.'
begin
-- routine   list_delayed
-- version   1
-- purpose   List delayed messages in the order in which they become due, without bodies.
-- promise   P11
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was committed late is listed once maintain has corrected its floor
    declare v_queue_id int;
    declare v_limit int default coalesce(p_max_messages, 100);
    declare v_from datetime(6);
    declare v_after bigint default coalesce(p_after_message_id, 0);
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    call rowq.internal_check_range('max_messages', v_limit, 1, 10000);
    if p_after_due_at is null and v_after <> 0 then
        call rowq.internal_refuse('after_message_id requires after_due_at');
    end if;
    call rowq.internal_require_queue(p_queue_name, v_queue_id);

    -- Begin at the floor, to skip dead rows.
    select timestamp'1970-01-01 00:00:00' + interval l.floor microsecond into v_from
    from rowq.lane l force index (primary)
    where l.queue_id = v_queue_id
      and l.lane = -2 /* delayed */;
    if p_after_due_at >= v_from then
        set v_from = p_after_due_at;
    else
        set v_after = 0;
    end if;

    select d.message_id, d.lane div 2 as priority, d.attempt, m.message_type, d.due_at,
           m.last_error
    from rowq.delayed d force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = d.message_id
    where d.queue_id = v_queue_id
      and (d.due_at = v_from and d.message_id > v_after or d.due_at > v_from)
      and d.message_id > 0
    order by d.queue_id, d.due_at, d.message_id
    limit v_limit;

    call rowq.internal_restore_session();
end//
delimiter ;
