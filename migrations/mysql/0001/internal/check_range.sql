drop procedure if exists rowq.internal_check_range;

delimiter //
create procedure rowq.internal_check_range(
    p_name longtext,
    p_value double,
    p_low double,
    p_high double
)
sql security definer
modifies sql data
begin
-- routine   internal_check_range
-- version   1
-- purpose   Refuse a number outside its range; null passes.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
    if p_value not between p_low and p_high then
        call rowq.internal_refuse(
            concat(p_name, ' must be between ', p_low, ' and ', p_high, ', got ', p_value)
        );
    end if;
end//
delimiter ;
