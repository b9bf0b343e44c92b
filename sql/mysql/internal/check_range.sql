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
-- purpose   Refuse a number outside its range; null passes.
-- promise   P15
-- errors    RQ711
    if p_value not between p_low and p_high then
        call rowq.internal_refuse(
            concat(p_name, ' must be between ', p_low, ' and ', p_high, ', got ', p_value)
        );
    end if;
end//
delimiter ;
