drop procedure if exists rowq.internal_lock_part;

delimiter //
create procedure rowq.internal_lock_part(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_lock_part
-- version   1
-- purpose   Keep everybody from adding or moving messages of a queue.
-- promise   P02 P15
-- locks     the row of the part, waiting for a second at most
-- commits   never; the caller owns the transaction
-- errors    RQ705
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
    select p.part_id into v_part_id
    from rowq.part p
    where p.part_id = p_part_id
    for update;
    set session innodb_lock_wait_timeout = v_patience;
end//
delimiter ;
