drop procedure if exists rowq.internal_finished_of;

delimiter //
create procedure rowq.internal_finished_of(
    p_part_id int,
    p_message_ids longtext,
    out p_finished_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_finished_of
-- purpose   Return which of these messages are finished and not yet archived; null where there is none.
-- differs   PostgreSQL compares arrays
    select json_arrayagg(x.message_id) into p_finished_ids
    from rowq.finished f force index (primary)
    straight_join json_table(
        f.messages, '$[*]' columns (message_id bigint path '$[0]')
    ) x
    straight_join (
        select distinct j.message_id
        from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) j
    ) a on a.message_id = x.message_id
    where f.part_id = p_part_id
      and f.finish_id > 0;
end//
delimiter ;
