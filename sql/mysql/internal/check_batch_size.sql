drop procedure if exists rowq.internal_check_batch_size;

delimiter //
create procedure rowq.internal_check_batch_size(p_batch_size int)
sql security definer
modifies sql data
begin
-- routine   internal_check_batch_size
-- purpose   Refuse a housekeeping batch_size outside 1 to 10000; null passes and means the default.
-- promise   P15
-- errors    RQ711
    call rowq.internal_check_range('batch_size', p_batch_size, 1, 10000);
end//
delimiter ;
