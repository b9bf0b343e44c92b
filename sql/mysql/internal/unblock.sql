drop procedure if exists rowq.internal_unblock;

delimiter //
create procedure rowq.internal_unblock(
    p_part_id int,
    p_message_ids longtext,
    p_ended_id bigint,
    p_owns_transaction boolean,
    inout p_most_looks int,
    out p_again longtext,
    out p_failed longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_unblock
-- purpose   Look again what blocked messages wait for, and let them go on where that is nothing. p_again are the ids of those that need another look, p_failed those that fail: [message_id, lane, attempt, the predecessor that is dead]. p_most_looks is for how many predecessors it may look, and then how many of that are left.
-- promise   P25 P26 P27
-- locks     blocked rows, tried only; as internal_try_unblock; new ready rows
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_seen, v_held, v_free, v_ready longtext;
    declare v_message_id bigint;
    declare v_state varchar(20);
    declare v_next varchar(80);
    declare v_is_late, v_is_end boolean default false;
    declare v_left int;
    declare each_other cursor for
        select j.message_id
        from json_table(
            v_held, '$[*]' columns (message_id bigint path '$[0]', is_free int path '$[3]')
        ) j
        where not j.is_free;
    declare continue handler for not found set v_is_end = true;
    set p_again = null, p_failed = null;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
    select json_arrayagg(b.message_id) into v_seen
    from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.blocked b force index (primary)
        on b.part_id = p_part_id
       and b.message_id = j.message_id;
    if v_seen is not null then
        -- What has been begun is finished first, so these go to the front of their priorities.
        select json_arrayagg(json_array(h.message_id, h.lane div 2 * 2, 0, h.is_free)) into v_held
        from (
            select b.message_id, b.lane,
                   if(
                       b.predecessor_id <=> p_ended_id
                       and b.rest_ids is null
                       and b.group_key is null
                       and coalesce(b.due_at <= v_now, true),
                       1, 0
                   ) as is_free
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.blocked b force index (primary)
                on b.part_id = p_part_id
               and b.message_id = j.message_id
            limit 1000000
            for update /*!80000 of b */ skip locked
        ) h;

        -- Somebody is cancelling the others, perhaps.
        select json_arrayagg(j.message_id) into p_again
        from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
        left join (
            select distinct x.message_id
            from json_table(v_held, '$[*]' columns (message_id bigint path '$[0]')) x
        ) h on h.message_id = j.message_id
        where h.message_id is null;
    end if;

    -- Each message has its share of the looks, so that those with many predecessors do not keep the
    -- others waiting.
    set v_left = json_length(v_held);
    open each_other;
    set v_is_end = false;
    messages: loop
        fetch each_other into v_message_id;
        if v_is_end then
            leave messages;
        end if;
        call rowq.internal_try_unblock(
            p_part_id, v_message_id, p_ended_id, p_owns_transaction, p_most_looks div v_left,
            p_most_looks, v_is_late, v_state, v_next
        );
        set v_is_end = false, v_left = v_left - 1;
        if v_state = 'again' then
            set p_again = json_array_append(coalesce(p_again, '[]'), '$', v_message_id + 0);
        elseif v_state = 'failed' then
            set p_failed = concat_ws(',', p_failed, v_next);
        elseif v_state = 'ready' then
            set v_ready = concat_ws(',', v_ready, v_next);
        end if;
    end loop;
    close each_other;
    set p_failed = concat('[', p_failed, ']'), v_ready = concat('[', v_ready, ']');

    select json_arrayagg(json_array(j.message_id, j.lane, 0)) into v_free
    from json_table(
        v_held,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            is_free int path '$[3]'
        )
    ) j
    where j.is_free;
    if v_free is not null then
        delete b
        from json_table(v_free, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.blocked b force index (primary)
            on b.part_id = p_part_id
           and b.message_id = j.message_id;
    end if;
    if v_free is not null and v_ready is not null then
        -- They go on in the order of their numbers.
        select json_arrayagg(json_array(h.message_id, h.lane, 0)) into v_ready
        from (
            select j.message_id, j.lane
            from json_table(
                json_merge_preserve(v_free, v_ready),
                '$[*]' columns (message_id bigint path '$[0]', lane smallint path '$[1]')
            ) j
            order by j.message_id
            limit 1000000
        ) h;
    end if;
    if v_free is not null or v_ready is not null then
        call rowq.internal_push_ready(p_part_id, coalesce(v_ready, v_free));
    end if;
end//
delimiter ;
