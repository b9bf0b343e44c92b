drop procedure if exists rowq.internal_retake_dedup_keys;

delimiter //
create procedure rowq.internal_retake_dedup_keys(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_retake_dedup_keys
-- purpose   Take the dedup keys of dead messages again, but not those that others have by now.
-- promise   P12
-- locks     new dedup rows, in key order; waits for another open enqueue of such a key
-- differs   part of reset on PostgreSQL
    declare v_rest, v_slice, v_keys longtext;
    declare v_count int;

    -- Insert in key order, because enqueue_batch does, and slice by slice, because no text holds
    -- the keys of many messages.
    select json_arrayagg(json_array(h.message_id, null, null)) into v_rest
    from (
        select m.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where m.dedup_key is not null
        order by m.dedup_key, m.message_id
        limit 1000000
    ) h;
    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        -- Keys are read first: an insert that reads as well would meet error 1020 at a key that was
        -- taken while it waited, under innodb_snapshot_isolation.
        select json_arrayagg(json_array(m.message_id, hex(m.dedup_key))) into v_keys
        from json_table(v_slice, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        -- One whose row internal_release_dedup_keys has left has its key still. A lock on a row
        -- that is not there would cover the gap around it.
        select count(*) into v_count
        from json_table(v_keys, '$[*]' columns (dedup_key varchar(1600) path '$[1]')) j
        straight_join rowq.dedup k force index (primary)
            on k.part_id = p_part_id
           and k.dedup_key = concat(x'FF', unhex(j.dedup_key));
        if v_count > 0 then
            delete k
            from json_table(
                v_keys,
                '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
            ) j
            straight_join rowq.dedup k force index (primary)
                on k.part_id = p_part_id
               and k.dedup_key = concat(x'FF', unhex(j.dedup_key))
               and k.message_id = j.message_id;
        end if;
        insert ignore into rowq.dedup (part_id, dedup_key, message_id)
        select p_part_id, unhex(j.dedup_key), j.message_id
        from json_table(
            v_keys,
            '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
        ) j
        order by unhex(j.dedup_key), j.message_id;
    end while;
end//
delimiter ;
