drop procedure if exists rowq.internal_recheck_death;

delimiter //
create procedure rowq.internal_recheck_death(
    p_part_id int,
    p_message_id bigint,
    inout p_most_looks int,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_recheck_death
-- purpose   Look again what waits for a dead message; p_is_done is false where a producer is still adding something that does. p_most_looks is as for internal_unblock. The transaction must be the call's own.
-- promise   P27
-- locks     the message row, tried only; as internal_follow_deaths
    declare v_message_id, v_dead_id bigint;
    select m.message_id into v_message_id
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.part_id = p_part_id
    for update skip locked;
    set p_is_done = true;

    if v_message_id is null then
        select m.message_id, false into v_message_id, p_is_done
        from rowq.message m force index (primary)
        where m.message_id = p_message_id
          and m.part_id = p_part_id;
    else
        -- One that was reset meanwhile is waited for as before.
        select d.message_id into v_dead_id
        from rowq.dead d force index (primary)
        where d.part_id = p_part_id
          and d.message_id = p_message_id;
        if v_dead_id is not null then
            call rowq.internal_follow_deaths(
                p_part_id, json_array(json_array(p_message_id + 0)), null, true, p_most_looks
            );
        end if;
    end if;
end//
delimiter ;
