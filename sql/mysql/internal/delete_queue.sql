drop procedure if exists rowq.internal_delete_queue;

delimiter //
create procedure rowq.internal_delete_queue(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_delete_queue
-- version   1
-- purpose   Delete everything that belongs to a queue, and the queue.
-- promise   P15
-- locks     all rows of the queue
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: part of drop_queue
    delete m
    from rowq.ready r force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = r.message_id
    where r.part_id = p_part_id;
    delete m
    from rowq.delayed d force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = d.message_id
    where d.part_id = p_part_id;
    delete m
    from rowq.dead d force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = d.message_id
    where d.part_id = p_part_id;
    delete m
    from rowq.claim c force index (primary)
    straight_join json_table(c.messages, '$[*]' columns (message_id bigint path '$[0]')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    where c.part_id = p_part_id;
    delete m
    from rowq.finished f force index (primary)
    straight_join json_table(f.messages, '$[*]' columns (message_id bigint path '$[0]')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    where f.part_id = p_part_id;

    delete from rowq.ready where part_id = p_part_id;
    delete from rowq.delayed where part_id = p_part_id;
    delete from rowq.claim where part_id = p_part_id;
    delete from rowq.dead where part_id = p_part_id;
    delete from rowq.dedup where part_id = p_part_id;
    delete from rowq.finished where part_id = p_part_id;
    delete from rowq.archive where part_id = p_part_id;
    delete from rowq.lane where part_id = p_part_id;
    delete from rowq.part where part_id = p_part_id;
    delete from rowq.queue where part_id = p_part_id;
end//
delimiter ;
