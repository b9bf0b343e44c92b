drop procedure if exists rowq.internal_delete_ready;

delimiter //
create procedure rowq.internal_delete_ready(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_delete_ready
-- version   1
-- purpose   Delete ready rows by their whole keys: an array of [message_id, lane, attempt, seq].
-- promise   P02
-- locks     ready rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: other engines delete by an array
    delete r
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            seq bigint path '$[3]'
        )
    ) j
    straight_join rowq.ready r force index (primary)
        on r.part_id = p_part_id
       and r.lane = j.lane
       and r.seq = j.seq
       and r.message_id = j.message_id;
end//
delimiter ;
