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
-- purpose   Take messages out of their groups: [message_id, lane, attempt, group key in hex]; return those that nobody holds, and their ids.
-- promise   P03
-- locks     grouped rows, passing over locked ones
-- differs   no such helper elsewhere: part of purge_queue and internal_pop_waiting
    select json_arrayagg(json_array(h.message_id, h.lane, 0, hex(h.group_key))),
           json_arrayagg(h.message_id)
    into p_messages, p_ids
    from (
        select g.group_key, g.message_id, g.lane
        from json_table(
            p_seen,
            '$[*]' columns (
                message_id bigint path '$[0]',
                group_key varchar(1600) path '$[3]'
            )
        ) j
        straight_join rowq.grouped g force index (primary)
            on g.part_id = p_part_id
           and g.group_key = unhex(j.group_key)
           and g.message_id = j.message_id
        for update /*!80000 of g */ skip locked
    ) h;
    delete g
    from json_table(
        p_messages,
        '$[*]' columns (message_id bigint path '$[0]', group_key varchar(1600) path '$[3]')
    ) j
    straight_join rowq.grouped g force index (primary)
        on g.part_id = p_part_id
       and g.group_key = unhex(j.group_key)
       and g.message_id = j.message_id;
end//
delimiter ;
