drop procedure if exists rowq.internal_remove_queue;

delimiter //
create procedure rowq.internal_remove_queue(
    p_part_id int,
    p_queue_name longtext,
    p_force boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_remove_queue
-- purpose   Remove an empty queue, or with p_force a full one, if nobody holds any of it for a second.
-- promise   P02 P15
-- locks     the part for itself, the gate, then all rows of the queue, waiting for a second at most
-- errors    RQ704 RQ705
-- differs   PostgreSQL locks tables
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare v_part_id int;
    declare exit handler for 1205
    begin
        set session innodb_lock_wait_timeout = v_patience;
        signal sqlstate '45705'
            set message_text = 'RQ705 queue_busy: open transactions hold the queue; try again';
    end;
    declare exit handler for sqlexception
    begin
        set session innodb_lock_wait_timeout = v_patience;
        resignal;
    end;

    set session innodb_lock_wait_timeout = 1;
    -- Wait for open enqueues, because their messages are not visible yet.
    select p.part_id into v_part_id
    from rowq.part p
    where p.part_id = p_part_id
    for update;
    -- Wait for whoever takes messages under the queue's limits, and let nobody else do so.
    delete from rowq.gate
    where part_id = p_part_id;
    if not p_force then
        call rowq.internal_refuse_not_empty(p_part_id, p_queue_name);
    end if;
    call rowq.internal_delete_queue(p_part_id);
    set session innodb_lock_wait_timeout = v_patience;
end//
delimiter ;
