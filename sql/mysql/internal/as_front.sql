drop procedure if exists rowq.internal_as_front;

delimiter //
create procedure rowq.internal_as_front(p_messages longtext, p_spent int, out p_front longtext)
sql security definer
modifies sql data
begin
-- routine   internal_as_front
-- version   1
-- purpose   Messages as they go to the front of their priority, p_spent attempts fewer.
-- promise   P09
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines change arrays in place
    select json_arrayagg(json_array(j.message_id, j.lane div 2 * 2, j.attempt - p_spent))
    into p_front
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;
end//
delimiter ;
