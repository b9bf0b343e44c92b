drop procedure if exists rowq.internal_next_numbers;

delimiter //
create procedure rowq.internal_next_numbers(out p_message_id bigint, out p_claim_id bigint)
sql security definer
reads sql data
begin
-- routine   internal_next_numbers
-- purpose   Return the numbers that the next message and the next claim would get.
-- differs   elsewhere sequences give them
    set p_message_id = null;
    select t.auto_increment into p_message_id
    from information_schema.tables t
    where t.table_schema = 'rowq'
      and t.table_name = 'message';
    set p_message_id = coalesce(p_message_id, 1),
        p_claim_id = uuid_short() & 9007199254740991;
end//
delimiter ;
