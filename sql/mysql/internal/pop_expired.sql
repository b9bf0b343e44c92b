drop procedure if exists rowq.internal_pop_expired;

delimiter //
create procedure rowq.internal_pop_expired(
    p_part_id int,
    p_due longtext,
    out p_messages longtext,
    out p_tokenless longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_expired
-- purpose   Take messages out of the places where internal_expire saw them, unless another session holds them. p_tokenless are those without a token of a group.
-- promise   P03 P36
-- locks     blocked, delayed, grouped and ready rows, tried only
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_due, v_seen, v_some, v_more longtext;
    set p_messages = null, p_tokenless = '[]';

    -- Several notes may say the same of one message.
    select json_arrayagg(json_array(h.message_id, h.lane, h.seq, h.place, h.due_at))
    into v_due
    from (
        select j.message_id, max(j.lane) as lane, max(j.seq) as seq, max(j.place) as place,
               max(j.due_at) as due_at
        from json_table(
            p_due,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                seq bigint path '$[2]',
                place varchar(20) path '$[3]',
                due_at bigint path '$[6]'
            )
        ) j
        where j.place <> 'later'
        group by j.message_id
    ) h;

    if locate('"blocked"', v_due) > 0 then
        select json_arrayagg(j.message_id) into v_seen
        from json_table(
            v_due,
            '$[*]' columns (message_id bigint path '$[0]', place varchar(20) path '$[3]')
        ) j
        where j.place = 'blocked';
        call rowq.internal_pop_blocked(p_part_id, v_seen, v_some, v_more);
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(p_tokenless, coalesce(v_more, '[]'));
    end if;

    if locate('"delayed"', v_due) > 0 then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.due_at)),
               json_arrayagg(if(h.group_key is null, null, h.message_id))
        into v_some, v_more
        from (
            select d.message_id, d.lane, d.attempt, d.group_key, j.due_at
            from json_table(
                v_due,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    place varchar(20) path '$[3]',
                    due_at bigint path '$[4]'
                )
            ) j
            straight_join rowq.delayed d force index (primary)
                on d.part_id = p_part_id
               and d.due_at = v_epoch + interval j.due_at microsecond
               and d.message_id = j.message_id
            where j.place = 'delayed'
            for update /*!80000 of d */ skip locked
        ) h;
        delete d
        from json_table(
            v_some, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.delayed d force index (primary)
            on d.part_id = p_part_id
           and d.due_at = v_epoch + interval j.due_at microsecond
           and d.message_id = j.message_id;
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(p_tokenless, coalesce(v_more, '[]'));
    end if;

    if locate('"grouped"', v_due) > 0 then
        select json_arrayagg(j.message_id) into v_seen
        from json_table(
            v_due,
            '$[*]' columns (message_id bigint path '$[0]', place varchar(20) path '$[3]')
        ) j
        where j.place = 'grouped';
        call rowq.internal_pop_grouped(p_part_id, v_seen, v_some, v_more);
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(p_tokenless, coalesce(v_more, '[]'));
    end if;

    if locate('"ready"', v_due) > 0 then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.seq)) into v_some
        from (
            select r.message_id, r.lane, r.attempt, r.seq
            from json_table(
                v_due,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    seq bigint path '$[2]',
                    place varchar(20) path '$[3]'
                )
            ) j
            straight_join rowq.ready r force index (primary)
                on r.part_id = p_part_id
               and r.lane = j.lane
               and r.seq = j.seq
               and r.message_id = j.message_id
            where j.place = 'ready'
            for update /*!80000 of r */ skip locked
        ) h;
        if v_some is not null then
            call rowq.internal_delete_ready(p_part_id, v_some);
            set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), v_some);
        end if;
    end if;
    if p_messages = '[]' then
        set p_messages = null;
    end if;
end//
delimiter ;
