drop procedure if exists rowq.internal_read_groups;

delimiter //
create procedure rowq.internal_read_groups(
    p_messages longtext,
    p_tokenless longtext,
    out p_groups longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_read_groups
-- purpose   Return the messages that have a token of a group, as [message_id, group key in hex]; null where none has. p_tokenless are ids that have none.
-- locks     message rows
-- differs   PostgreSQL reads keys of both kinds at once, as it deletes the messages
    -- Read with a lock, because an old snapshot may not show the message yet.
    select json_arrayagg(json_array(h.message_id, hex(h.group_key))) into p_groups
    from (
        select m.message_id, m.group_key
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where m.group_key is not null
        for update /*!80000 of m */
    ) h
    left join (
        select distinct j.message_id
        from json_table(p_tokenless, '$[*]' columns (message_id bigint path '$')) j
    ) t on t.message_id = h.message_id
    where t.message_id is null;
end//
delimiter ;
