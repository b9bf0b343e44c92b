drop procedure if exists rowq.list_topics;

delimiter //
create procedure rowq.list_topics(p_queue_name longtext)
sql security definer
modifies sql data
comment 'List the topic patterns of one queue or all, by queue name.'
begin
-- routine   list_topics
-- version   1
-- purpose   List the topic patterns of one queue or all, by queue name.
-- promise   P35
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
           convert(b.topic_pattern using utf8mb4) as topic_pattern
    from rowq.topic_binding b
    straight_join rowq.queue q force index (primary) on q.queue_id = b.queue_id
    where v_queue_id is null
       or b.queue_id = v_queue_id
    order by q.queue_name, b.topic_pattern;

    call rowq.internal_restore_session();
end//
delimiter ;
