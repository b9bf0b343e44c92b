drop procedure if exists rowq.internal_pop_blocked;

delimiter //
create procedure rowq.internal_pop_blocked(
    p_part_id int,
    p_seen longtext,
    out p_messages longtext,
    out p_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_blocked
-- purpose   Take messages out that wait for others, by their ids; return those that nobody holds, and their ids.
-- promise   P03
-- locks     blocked rows, passing over locked ones
-- differs   no such helper elsewhere: part of purge_queue and internal_pop_waiting
    select json_arrayagg(json_array(h.message_id, h.lane, 0)), json_arrayagg(h.message_id)
    into p_messages, p_ids
    from (
        select b.message_id, b.lane
        from json_table(p_seen, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.blocked b force index (primary)
            on b.part_id = p_part_id
           and b.message_id = j.message_id
        for update /*!80000 of b */ skip locked
    ) h;
    delete b
    from json_table(p_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.blocked b force index (primary)
        on b.part_id = p_part_id
       and b.message_id = j.message_id;
end//
delimiter ;
