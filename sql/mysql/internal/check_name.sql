drop procedure if exists rowq.internal_check_name;

delimiter //
create procedure rowq.internal_check_name(p_name varchar(64), p_value longtext)
sql security definer
modifies sql data
begin
-- routine   internal_check_name
-- purpose   Refuse a bad name of a queue or a schedule; p_name is that of the parameter.
-- promise   P15
-- errors    RQ711
    if p_value is null
       or char_length(p_value) not between 1 and 100
       or p_value regexp '[[:cntrl:]]' then
        call rowq.internal_refuse(
            concat(p_name, ' must be 1 to 100 characters, none of them control')
        );
    end if;
    call rowq.internal_check_text(p_name, p_value);
end//
delimiter ;
