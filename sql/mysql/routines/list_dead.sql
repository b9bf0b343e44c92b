drop procedure if exists rowq.list_dead;

delimiter //
create procedure rowq.list_dead(
    p_queue_name longtext,
    p_after_message_id bigint,
    p_max_messages int,
    p_before_message_id bigint,
    p_message_type longtext
)
sql security definer
modifies sql data
comment 'List dead messages by id, forwards or backwards, without bodies.'
begin
-- routine   list_dead
-- version   1
-- purpose   List dead messages by id, forwards or backwards, without bodies.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_queue_id int;
    declare v_limit int default coalesce(p_max_messages, 100);
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    call rowq.internal_check_range('max_messages', v_limit, 1, 10000);
    call rowq.internal_require_queue(p_queue_name, v_queue_id);

    if p_before_message_id is null then
        select d.message_id, d.lane div 2 as priority, d.attempt, m.message_type, m.enqueued_at,
               d.died_at, d.last_error
        from rowq.dead d force index (primary)
        straight_join rowq.message m force index (primary) on m.message_id = d.message_id
        where d.queue_id = v_queue_id
          and d.message_id > coalesce(p_after_message_id, 0)
          and (
              p_message_type is null
              or cast(m.message_type as binary) = cast(p_message_type as binary)
          )
        order by d.queue_id, d.message_id
        limit v_limit;
    else
        select d.message_id, d.lane div 2 as priority, d.attempt, m.message_type, m.enqueued_at,
               d.died_at, d.last_error
        from rowq.dead d force index (primary)
        straight_join rowq.message m force index (primary) on m.message_id = d.message_id
        where d.queue_id = v_queue_id
          and d.message_id > coalesce(p_after_message_id, 0)
          and d.message_id < p_before_message_id
          and (
              p_message_type is null
              or cast(m.message_type as binary) = cast(p_message_type as binary)
          )
        order by d.queue_id desc, d.message_id desc
        limit v_limit;
    end if;

    call rowq.internal_restore_session();
end//
delimiter ;
