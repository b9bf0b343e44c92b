drop procedure if exists rowq.put;

delimiter //
create procedure rowq.put(p_queue_name longtext, p_body longtext)
sql security definer
modifies sql data
comment 'Enqueue a text body with default options: the short form of enqueue.'
begin
-- routine   put
-- version   1
-- purpose   Enqueue a text body with default options: the short form of enqueue.
-- promise   P01 P05 P15 P20
-- locks     as enqueue, which it calls
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   MariaDB and MySQL only: their parameters have no defaults
    call rowq.enqueue(
        p_queue_name, p_body, null, null, null, null, null, null, null, null, null, null, null,
        null, null
    );
end//
delimiter ;
