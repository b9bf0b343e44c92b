drop procedure if exists rowq.internal_lock_dead;

delimiter //
create procedure rowq.internal_lock_dead(
    p_queue_name longtext,
    p_message_ids longtext,
    p_max_messages int,
    p_message_type longtext,
    p_died_before datetime(6),
    out p_part_id int,
    out p_dead longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_lock_dead
-- purpose   Refuse bad arguments of reset and discard_dead, and lock the dead messages that they mean, as [message_id, lane, attempt, holds_group]; null where there is none.
-- locks     the part, shared; dead rows, passing over locked ones
    declare v_limit int default if(p_message_ids is null, coalesce(p_max_messages, 1000), 10000);
    declare v_seen longtext;

    call rowq.internal_check_ids(p_message_ids);
    call rowq.internal_check_range('max_messages', p_max_messages, 1, 10000);
    if p_message_ids is not null
       and (p_message_type is not null or p_died_before is not null) then
        call rowq.internal_refuse('message_type and died_before go together with no message_ids');
    end if;

    call rowq.internal_require_queue(p_queue_name, p_part_id);
    call rowq.internal_lock_part_shared(p_part_id, p_queue_name);

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
    if p_message_ids is null then
        select json_arrayagg(h.message_id) into v_seen
        from (
            select d.message_id
            from rowq.dead d force index (primary)
            where d.part_id = p_part_id
              and (p_died_before is null or d.died_at < p_died_before)
              and (p_message_type is null or cast(p_message_type as binary) = (
                  select cast(m.message_type as binary)
                  from rowq.message m force index (primary)
                  where m.message_id = d.message_id
              ))
            order by d.part_id, d.message_id
            limit 10000
        ) h;
    else
        select json_arrayagg(h.message_id) into v_seen
        from (
            select distinct d.message_id
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            straight_join rowq.dead d force index (primary)
                on d.part_id = p_part_id
               and d.message_id = a.message_id
        ) h;
    end if;
    select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.holds_group))
    into p_dead
    from (
        select d.message_id, d.lane, d.attempt, d.holds_group
        from (
            select distinct a.message_id
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) a
            order by a.message_id
        ) j
        straight_join rowq.dead d force index (primary)
            on d.part_id = p_part_id
           and d.message_id = j.message_id
        limit v_limit
        for update skip locked
    ) h;
end//
delimiter ;
