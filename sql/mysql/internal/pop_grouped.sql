drop procedure if exists rowq.internal_pop_grouped;

delimiter //
create procedure rowq.internal_pop_grouped(
    p_part_id int,
    p_seen longtext,
    out p_messages longtext,
    out p_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_grouped
-- purpose   Take messages out of their groups, by their ids; return those that nobody holds, and their ids.
-- promise   P03
-- locks     grouped rows, passing over locked ones
-- differs   no such helper elsewhere: part of purge_queue and internal_pop_waiting
    declare v_rest, v_slice, v_keys longtext;

    -- Keys are read where they are needed, because no text holds those of many messages.
    select json_arrayagg(json_array(h.message_id, h.lane, 0)), json_arrayagg(h.message_id)
    into p_messages, p_ids
    from (
        select g.message_id, g.lane
        from (
            select m.message_id, m.group_key
            from json_table(p_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
        ) k
        straight_join rowq.grouped g force index (primary)
            on g.part_id = p_part_id
           and g.group_key = k.group_key
           and g.message_id = k.message_id
        for update /*!80000 of g */ skip locked
    ) h;
    -- Read the keys before the delete, which would lock the rows of message, too, and wait for a
    -- producer that has just named one of them.
    set v_rest = p_messages;
    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        select json_arrayagg(json_array(m.message_id, hex(m.group_key))) into v_keys
        from json_table(v_slice, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        delete g
        from json_table(
            v_keys,
            '$[*]' columns (message_id bigint path '$[0]', group_key varchar(1600) path '$[1]')
        ) j
        straight_join rowq.grouped g force index (primary)
            on g.part_id = p_part_id
           and g.group_key = unhex(j.group_key)
           and g.message_id = j.message_id;
    end while;
end//
delimiter ;
