drop procedure if exists rowq.internal_release_dedup_keys;

delimiter //
create procedure rowq.internal_release_dedup_keys(p_part_id int, p_ties longtext)
sql security definer
modifies sql data
begin
-- routine   internal_release_dedup_keys
-- purpose   Free the dedup keys of messages that are finished or dead, as internal_read_ties returns them.
-- promise   P12
-- locks     dedup rows, in key order
    -- Delete in key order, because enqueue_batch inserts its keys in that order.
    delete k
    from (
        select j.message_id, unhex(j.dedup_key) as dedup_key
        from json_table(
            p_ties,
            '$[*]' columns (
                message_id bigint path '$[0]',
                dedup_key varchar(1600) path '$[2]'
            )
        ) j
        where j.dedup_key is not null
        order by j.dedup_key
        limit 1000000
    ) j
    straight_join rowq.dedup k force index (primary)
        on k.part_id = p_part_id
       and k.dedup_key = j.dedup_key
       and k.message_id = j.message_id;
end//
delimiter ;
