drop procedure if exists rowq.internal_end_tied;

delimiter //
create procedure rowq.internal_end_tied(
    p_part_id int,
    p_is_archived boolean,
    p_is_keyed boolean,
    p_messages longtext,
    p_tokenless longtext,
    p_keyless longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_end_tied
-- purpose   Cut the ties of finished messages, and delete those that are not archived; p_is_keyed, p_tokenless and p_keyless are those of internal_finish.
-- promise   P04 P12 P22 P26
-- locks     message rows; dedup rows, in key order; as internal_cut_ties
-- differs   PostgreSQL learns of ties by the delete itself
    declare v_message_id bigint;
    declare v_ties, v_freed longtext;
    declare v_keyed longtext default p_messages;

    if p_keyless is not null then
        -- Others may have the keys of these by now, and under the caller's repeatable read a look
        -- with a lock for a key that is not there would lock the gap around it.
        select json_arrayagg(json_array(j.message_id, null, null)) into v_keyed
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        left join (
            select distinct a.message_id
            from json_table(p_keyless, '$[*]' columns (message_id bigint path '$')) a
        ) f on f.message_id = j.message_id
        where f.message_id is null;
    end if;

    if p_is_archived then
        -- What waits for one of them and is not committed yet is left to internal_archive.
        call rowq.internal_read_ties(
            p_messages, p_tokenless, true, not p_owns_transaction, v_ties
        );
        set v_freed = v_ties;
        if p_keyless is not null then
            call rowq.internal_read_ties(v_keyed, null, true, not p_owns_transaction, v_freed);
        end if;
        if v_freed is not null and p_is_keyed then
            call rowq.internal_release_dedup_keys(p_part_id, v_freed);
        end if;
    else
        call rowq.internal_read_ties(p_messages, p_tokenless, false, true, v_ties);
        if p_keyless is not null then
            delete m
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join (
                select distinct a.message_id
                from json_table(p_keyless, '$[*]' columns (message_id bigint path '$')) a
            ) f on f.message_id = j.message_id
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        end if;
        if json_length(v_keyed) = 1 then
            set v_message_id = json_value(v_keyed, '$[0][0]');
            delete m, k
            from rowq.message m force index (primary)
            left join rowq.dedup k force index (primary)
                on k.part_id = p_part_id
               and k.dedup_key = m.dedup_key
               and k.message_id = m.message_id
            where m.message_id = v_message_id;
        elseif v_keyed is not null then
            -- Delete in key order, because enqueue_batch inserts its keys in that order.
            delete m, k
            from (
                select j.message_id
                from json_table(v_keyed, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.message x force index (primary) on x.message_id = j.message_id
                order by x.dedup_key
                limit 1000000
            ) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            left join rowq.dedup k force index (primary)
                on k.part_id = p_part_id
               and k.dedup_key = m.dedup_key
               and k.message_id = j.message_id;
        end if;
    end if;
    if v_ties is not null then
        call rowq.internal_cut_ties(p_part_id, v_ties, p_owns_transaction);
    end if;
end//
delimiter ;
