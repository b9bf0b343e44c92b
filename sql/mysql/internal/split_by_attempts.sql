drop procedure if exists rowq.internal_split_by_attempts;

delimiter //
create procedure rowq.internal_split_by_attempts(
    p_messages longtext,
    p_max_attempts int,
    out p_alive longtext,
    out p_dead longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_split_by_attempts
-- purpose   Divide messages into those with an attempt left and those without; null where there is none.
-- promise   P10
-- locks     message rows
    declare v_worn int;
    -- Read with a lock, because an old snapshot may not show the message yet.
    select sum(h.attempt >= coalesce(h.max_attempts, p_max_attempts)) into v_worn
    from (
        select j.attempt, m.max_attempts
        from json_table(
            p_messages,
            '$[*]' columns (message_id bigint path '$[0]', attempt smallint path '$[2]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        for update /*!80000 of m */
    ) h;
    set p_alive = p_messages, p_dead = null;

    if v_worn > 0 then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_alive
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.attempt < coalesce(m.max_attempts, p_max_attempts)
        for update /*!80000 of m */;
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_dead
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.attempt >= coalesce(m.max_attempts, p_max_attempts)
        for update /*!80000 of m */;
    end if;
end//
delimiter ;
