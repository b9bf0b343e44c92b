drop procedure if exists rowq.internal_split_by_attempts;

delimiter //
create procedure rowq.internal_split_by_attempts(
    p_messages longtext,
    p_max_attempts int,
    p_owns_transaction boolean,
    out p_alive longtext,
    out p_dead longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_split_by_attempts
-- purpose   Divide messages into those with an attempt left and those without; null where there is none.
-- promise   P10
-- locks     in the caller's transaction as internal_try_lock_messages
    declare v_worn, v_locked, v_free, v_held longtext;

    -- Where the snapshot is older than a message, a lock finds it.
    if not p_owns_transaction then
        call rowq.internal_try_lock_messages(p_messages, v_free, v_held);
    end if;
    if v_free is not null then
        select json_arrayagg(j.message_id) into v_locked
        from json_table(
            p_messages,
            '$[*]' columns (message_id bigint path '$[0]', attempt smallint path '$[2]')
        ) j
        straight_join (
            select distinct x.message_id
            from json_table(v_free, '$[*]' columns (message_id bigint path '$[0]')) x
        ) f on f.message_id = j.message_id
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.attempt >= coalesce(m.max_attempts, p_max_attempts)
        for update /*!80000 of m */;
    end if;
    if p_owns_transaction or v_held is not null then
        select json_arrayagg(j.message_id) into v_worn
        from json_table(
            p_messages,
            '$[*]' columns (message_id bigint path '$[0]', attempt smallint path '$[2]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.attempt >= coalesce(m.max_attempts, p_max_attempts);
    end if;
    if v_locked is not null then
        set v_worn = json_merge_preserve(coalesce(v_worn, '[]'), v_locked);
    end if;

    set p_alive = p_messages, p_dead = null;

    if v_worn is not null then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_alive
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        left join (
            select distinct x.message_id
            from json_table(v_worn, '$[*]' columns (message_id bigint path '$')) x
        ) w on w.message_id = j.message_id
        where w.message_id is null;
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_dead
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join (
            select distinct x.message_id
            from json_table(v_worn, '$[*]' columns (message_id bigint path '$')) x
        ) w on w.message_id = j.message_id;
    end if;
end//
delimiter ;
