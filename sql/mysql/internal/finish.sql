drop procedure if exists rowq.internal_finish;

delimiter //
create procedure rowq.internal_finish(
    p_part_id int,
    p_archive_days int,
    p_is_keyed boolean,
    p_messages longtext,
    p_tokenless longtext,
    p_owns_transaction boolean,
    p_state varchar(20)
)
sql security definer
modifies sql data
begin
-- routine   internal_finish
-- purpose   Remove finished messages, or note them for the archive; p_is_keyed is false where none has a key, and those in p_tokenless have no token of their group.
-- promise   P04 P12 P22 P26 P32
-- locks     message rows; dedup rows, in key order; result rows; as internal_cut_ties
    declare v_message_id bigint;
    declare v_ties longtext;

    if p_archive_days > 0 then
        -- What waits for one of them and is not committed yet is left to internal_archive.
        call rowq.internal_read_ties(
            p_messages, p_tokenless, true, not p_owns_transaction, v_ties
        );
        insert into rowq.finished (part_id, finished_at, state, messages)
        values (p_part_id, utc_timestamp(6), p_state, p_messages);
        if v_ties is not null and p_is_keyed then
            call rowq.internal_release_dedup_keys(p_part_id, v_ties);
        end if;
    elseif not p_is_keyed then
        delete m
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where m.has_successors is null;
        if row_count() < json_length(p_messages) then
            call rowq.internal_end_awaited(p_part_id, p_messages, p_owns_transaction);
        end if;
    else
        call rowq.internal_read_ties(p_messages, p_tokenless, false, true, v_ties);
        if json_length(p_messages) = 1 then
            set v_message_id = json_value(p_messages, '$[0][0]');
            delete m, k
            from rowq.message m force index (primary)
            left join rowq.dedup k force index (primary)
                on k.part_id = p_part_id
               and k.dedup_key = m.dedup_key
               and k.message_id = m.message_id
            where m.message_id = v_message_id;
        else
            -- Delete in key order, because enqueue_batch inserts its keys in that order.
            delete m, k
            from (
                select j.message_id
                from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
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
    -- What was completed has results of its own, which complete keeps.
    if p_state <> 'completed' then
        call rowq.internal_push_result(p_part_id, p_messages, p_state, null, null, null);
    end if;
    if v_ties is not null then
        call rowq.internal_cut_ties(p_part_id, v_ties, p_owns_transaction);
    end if;
end//
delimiter ;
