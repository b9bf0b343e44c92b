drop procedure if exists rowq.internal_check_ids;

delimiter //
create procedure rowq.internal_check_ids(p_message_ids longtext)
sql security definer
modifies sql data
begin
-- routine   internal_check_ids
-- purpose   Refuse a list of messages that is no JSON array of ids, or too long; null passes.
-- promise   P15
-- errors    RQ711
    declare v_is_good boolean;
    if p_message_ids is not null then
        call rowq.internal_is_id_list(p_message_ids, v_is_good);
        if not v_is_good then
            call rowq.internal_refuse(
                'message_ids must be a JSON array of at most 10000 ids, none of them null'
            );
        end if;
    end if;
end//
delimiter ;
