drop procedure if exists rowq.internal_lock_ties;

delimiter //
create procedure rowq.internal_lock_ties(
    p_part_id int,
    p_messages longtext,
    p_keyless longtext,
    p_with_messages boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_lock_ties
-- purpose   Lock at once what the ends of these messages would lock slice by slice: their dedup keys, but those of p_keyless, and their rows, if asked for.
-- promise   P12 P22 P26
-- locks     message rows, if asked for; then dedup rows, in key order
-- differs   elsewhere there are no slices
    declare v_count int;

    -- Who ends a slice has locked groups and keys by then, and a producer that waits for one of
    -- these may hold what the next slice needs. So wait for all of that before the first slice.
    if p_with_messages then
        select count(*) into v_count
        from (
            select m.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
            for update /*!80000 of m */
        ) h;
    end if;
    select count(*) into v_count
    from (
        select k.message_id
        from (
            select m.dedup_key
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            left join (
                select distinct a.message_id
                from json_table(p_keyless, '$[*]' columns (message_id bigint path '$')) a
            ) f on f.message_id = m.message_id
            where m.dedup_key is not null
              and f.message_id is null
            order by m.dedup_key
            limit 1000000
        ) o
        straight_join rowq.dedup k force index (primary)
            on k.part_id = p_part_id
           and k.dedup_key = o.dedup_key
        limit 1000000
        for update /*!80000 of k */
    ) h;
end//
delimiter ;
