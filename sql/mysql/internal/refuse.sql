drop procedure if exists rowq.internal_refuse;

delimiter //
create procedure rowq.internal_refuse(p_fault longtext)
sql security definer
modifies sql data
begin
-- routine   internal_refuse
-- purpose   Raise the error for an invalid argument.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: other engines raise with an expression
    -- Cut the text, because MySQL refuses one of more than 128 characters.
    declare v_text varchar(128) default left(concat('RQ711 invalid_argument: ', p_fault), 128);
    signal sqlstate '45711' set message_text = v_text;
end//
delimiter ;
