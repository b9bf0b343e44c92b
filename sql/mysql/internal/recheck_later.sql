drop procedure if exists rowq.internal_recheck_later;

delimiter //
create procedure rowq.internal_recheck_later(
    p_part_id int,
    p_message_ids longtext,
    p_predecessor_ids longtext,
    p_are_dead boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_recheck_later
-- purpose   Have maintain look again at blocked messages, or at what waits for predecessors that have ended; the same ids as both are messages that have ended, and whose rows another transaction has locked.
-- promise   P26
-- locks     new recheck rows
    insert into rowq.recheck (part_id, due_at, recheck_id, message_id, predecessor_id, is_hint)
    select p_part_id, utc_timestamp(6), uuid_short() & 9007199254740991,
           if(p_message_ids is null, null, j.message_id),
           if(p_predecessor_ids is null, null, j.message_id),
           p_message_ids is null and p_are_dead
    from json_table(
        coalesce(p_message_ids, p_predecessor_ids), '$[*]' columns (message_id bigint path '$')
    ) j;
end//
delimiter ;
