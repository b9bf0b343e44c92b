drop procedure if exists rowq.internal_free_dedup_keys;

delimiter //
create procedure rowq.internal_free_dedup_keys(p_part_id int, out p_is_done boolean)
sql security definer
modifies sql data
begin
-- routine   internal_free_dedup_keys
-- purpose   Delete some dedup keys that internal_release_dedup_keys has left; p_is_done is false where there are others, or one is locked still. The transaction must be the call's own.
-- promise   P12
-- locks     dedup rows, tried only
    declare v_seen, v_free longtext;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked. The
    -- engine cuts an array of more than a megabyte, which as many keys in hex stay below.
    select json_arrayagg(json_array(h.message_id, hex(h.dedup_key))) into v_seen
    from (
        select k.message_id, substring(k.dedup_key, 2) as dedup_key
        from rowq.dedup k force index (primary)
        where k.part_id = p_part_id
          and k.dedup_key >= x'FF'
        order by k.part_id, k.dedup_key
        limit 300
    ) h;
    select json_arrayagg(hex(h.dedup_key)) into v_free
    from (
        select k.dedup_key
        from json_table(
            v_seen,
            '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
        ) j
        straight_join rowq.dedup k force index (primary)
            on k.part_id = p_part_id
           and k.dedup_key = unhex(j.dedup_key)
           and k.message_id = j.message_id
        limit 1000000
        for update /*!80000 of k */ skip locked
    ) h;
    delete k
    from json_table(v_free, '$[*]' columns (dedup_key varchar(1600) path '$')) j
    straight_join rowq.dedup k force index (primary)
        on k.part_id = p_part_id
       and k.dedup_key = unhex(j.dedup_key);
    -- What is left of those that were seen is locked, unless a new message has taken the key. A
    -- delete with a join would lock what it joins, and wait for it.
    select json_arrayagg(json_array(j.message_id, j.dedup_key)) into v_seen
    from json_table(
        v_seen,
        '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
    ) j
    left join rowq.dedup o force index (primary)
        on o.part_id = p_part_id
       and o.dedup_key = unhex(j.dedup_key)
       and o.message_id = j.message_id
    where o.message_id is null;
    select json_arrayagg(hex(h.dedup_key)) into v_free
    from (
        select k.dedup_key
        from json_table(
            v_seen,
            '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
        ) j
        straight_join rowq.dedup k force index (primary)
            on k.part_id = p_part_id
           and k.dedup_key = concat(x'FF', unhex(j.dedup_key))
           and k.message_id = j.message_id
        limit 1000000
        for update /*!80000 of k */ skip locked
    ) h;
    delete k
    from json_table(v_free, '$[*]' columns (dedup_key varchar(1602) path '$')) j
    straight_join rowq.dedup k force index (primary)
        on k.part_id = p_part_id
       and k.dedup_key = unhex(j.dedup_key);
    select count(*) = 0 into p_is_done
    from (
        select k.message_id
        from rowq.dedup k force index (primary)
        where k.part_id = p_part_id
          and k.dedup_key >= x'FF'
        limit 1
    ) h;
end//
delimiter ;
