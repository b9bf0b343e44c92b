drop procedure if exists rowq.internal_release_dedup_keys;

delimiter //
create procedure rowq.internal_release_dedup_keys(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_release_dedup_keys
-- version   1
-- purpose   Free the dedup keys of messages that are finished or dead.
-- promise   P12
-- locks     message rows; dedup rows, in key order
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    -- In key order, as enqueue_batch takes its keys.
    delete k
    from (
        select j.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message x force index (primary) on x.message_id = j.message_id
        where x.dedup_key is not null
        order by x.dedup_key
        limit 1000000
    ) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    straight_join rowq.dedup k force index (primary)
        on k.part_id = p_part_id
       and k.dedup_key = m.dedup_key
       and k.message_id = j.message_id;
end//
delimiter ;
