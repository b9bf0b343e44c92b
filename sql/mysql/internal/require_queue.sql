drop procedure if exists rowq.internal_require_queue;

delimiter //
create procedure rowq.internal_require_queue(p_queue_name longtext, out p_part_id int)
sql security definer
reads sql data
begin
-- routine   internal_require_queue
-- purpose   Return the part of a queue; raise an error if it does not exist.
-- promise   P15
-- errors    RQ701 RQ711
    set p_part_id = null;
    select q.part_id into p_part_id
    from rowq.queue q
    where q.queue_name = cast(p_queue_name as binary);
    if p_part_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    end if;
end//
delimiter ;
