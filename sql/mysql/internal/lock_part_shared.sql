drop procedure if exists rowq.internal_lock_part_shared;

delimiter //
create procedure rowq.internal_lock_part_shared(p_part_id int, p_queue_name longtext)
sql security definer
modifies sql data
begin
-- routine   internal_lock_part_shared
-- version   1
-- purpose   Keep a queue from being dropped while messages are added or moved.
-- promise   P01 P02
-- locks     the row of the part, shared; waits for a drop that is under way
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   on PostgreSQL the first insert waits for a drop
    declare v_part_id int;
    -- By its whole key and never changed: a lock without a gap, and current in an old snapshot.
    select p.part_id into v_part_id
    from rowq.part p
    where p.part_id = p_part_id
    lock in share mode;
    if v_part_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    end if;
end//
delimiter ;
