drop procedure if exists rowq.internal_refuse_queue;

delimiter //
create procedure rowq.internal_refuse_queue(p_queue_name longtext)
sql security definer
modifies sql data
begin
-- routine   internal_refuse_queue
-- purpose   Raise the error for a queue name that is missing or unknown.
-- promise   P15
-- errors    RQ701 RQ711
    declare v_text varchar(128);
    if p_queue_name is null then
        call rowq.internal_refuse('queue_name is missing');
    end if;
    set v_text = concat('RQ701 queue_not_found: ', left(p_queue_name, 100));
    signal sqlstate '45701' set message_text = v_text;
end//
delimiter ;
