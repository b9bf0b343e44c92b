drop procedure if exists rowq.internal_finish;

delimiter //
create procedure rowq.internal_finish(
    p_part_id int,
    p_archive_days int,
    p_messages longtext,
    p_state varchar(20)
)
sql security definer
modifies sql data
begin
-- routine   internal_finish
-- version   1
-- purpose   Remove finished messages, or note them for the archive.
-- promise   P04 P12
-- locks     message rows; dedup rows, in key order
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    declare v_message_id bigint;

    if p_archive_days > 0 then
        insert into rowq.finished (part_id, finished_at, state, messages)
        values (p_part_id, utc_timestamp(6), p_state, p_messages);
        call rowq.internal_release_dedup_keys(p_part_id, p_messages);
    elseif json_length(p_messages) = 1 then
        set v_message_id = json_value(p_messages, '$[0][0]');
        delete m, k
        from rowq.message m force index (primary)
        left join rowq.dedup k force index (primary)
            on k.part_id = p_part_id
           and k.dedup_key = m.dedup_key
           and k.message_id = m.message_id
        where m.message_id = v_message_id;
    else
        -- In key order, as enqueue_batch takes its keys.
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
end//
delimiter ;
