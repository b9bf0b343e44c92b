drop procedure if exists rowq.internal_try_lock_messages;

delimiter //
create procedure rowq.internal_try_lock_messages(
    p_messages longtext,
    out p_free longtext,
    out p_held longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_try_lock_messages
-- purpose   Lock the rows of messages, arrays that begin with message_id; divide them into p_free, which are locked, and p_held, which another transaction has locked, null where there is none.
-- promise   P26
-- locks     message rows, tried only, but waited for where the caller's snapshot does not show them
-- differs   elsewhere a plain look shows every message that a lock finds
    declare v_locked, v_unseen longtext;
    declare v_count int;
    set p_free = p_messages, p_held = null;

    select json_arrayagg(h.message_id), count(*) into v_locked, v_count
    from (
        select m.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        limit 1000000
        for update /*!80000 of m */ skip locked
    ) h;
    if v_count < json_length(p_messages) then
        select json_arrayagg(if(m.message_id is null, null, json_array(j.message_id, null, null))),
               json_arrayagg(if(m.message_id is null, json_array(j.message_id, null, null), null)),
               sum(m.message_id is null)
        into p_held, v_unseen, v_count
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        left join (
            select distinct x.message_id
            from json_table(v_locked, '$[*]' columns (message_id bigint path '$')) x
        ) l on l.message_id = j.message_id
        left join rowq.message m force index (primary) on m.message_id = j.message_id
        where l.message_id is null;
        if v_count > 0 then
            select count(*) into v_count
            from (
                select m.message_id
                from json_table(v_unseen, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.message m force index (primary) on m.message_id = j.message_id
                limit 1000000
                for update /*!80000 of m */
            ) h;
        end if;
        -- Leave out the nulls that the aggregates have put into the arrays.
        select json_arrayagg(json_array(j.message_id, null, null)) into p_held
        from json_table(p_held, '$[*]' columns (message_id bigint path '$[0]')) j
        where j.message_id is not null;
        select json_arrayagg(json_array(j.message_id, null, null)) into p_free
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        left join (
            select distinct x.message_id
            from json_table(p_held, '$[*]' columns (message_id bigint path '$[0]')) x
        ) h on h.message_id = j.message_id
        where h.message_id is null;
    end if;
end//
delimiter ;
