drop procedure if exists rowq.internal_pop_waiting;

delimiter //
create procedure rowq.internal_pop_waiting(
    p_part_id int,
    p_message_ids longtext,
    out p_messages longtext,
    out p_tokenless longtext,
    out p_keyless longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_waiting
-- purpose   Take messages out of wherever they wait; those that a worker holds stay. p_tokenless are those without a token of a group, and p_keyless those that were dead, null where none was.
-- promise   P03
-- locks     blocked, delayed, dead, grouped and ready rows, passing over locked ones
-- differs   PostgreSQL finds delayed messages by their ids
    declare v_ids, v_seen, v_more, v_some, v_rest longtext;
    set p_messages = null, p_tokenless = '[]', p_keyless = null;

    -- Find rows without locks, then lock them by their whole keys: under the caller's REPEATABLE
    -- READ, a lock on a key that is not there would cover the gap around it and make producers
    -- wait.
    select json_arrayagg(h.message_id) into v_ids
    from (
        select distinct a.message_id
        from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
        where a.message_id > 0
        order by a.message_id
    ) h;

    -- A message that waits for others goes to each of the other places from there, so look for it
    -- first.
    select json_arrayagg(b.message_id) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.blocked b force index (primary)
        on b.part_id = p_part_id
       and b.message_id = j.message_id;
    if v_seen is not null then
        call rowq.internal_pop_blocked(p_part_id, v_seen, p_messages, p_tokenless);
    end if;

    select json_arrayagg(d.message_id) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.dead d force index (primary)
        on d.part_id = p_part_id
       and d.message_id = j.message_id;
    if v_seen is not null then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt)),
               json_arrayagg(if(h.holds_group, null, h.message_id)),
               json_arrayagg(h.message_id)
        into v_some, v_more, p_keyless
        from (
            select d.message_id, d.lane, d.attempt, d.holds_group
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.dead d force index (primary)
                on d.part_id = p_part_id
               and d.message_id = j.message_id
            for update /*!80000 of d */ skip locked
        ) h;
        delete d
        from json_table(v_some, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.dead d force index (primary)
            on d.part_id = p_part_id
           and d.message_id = j.message_id;
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(coalesce(p_tokenless, '[]'), coalesce(v_more, '[]'));
    end if;

    -- Find a delayed message by message.due_at, which is its place in delayed.
    select json_arrayagg(
               json_array(d.message_id, timestampdiff(microsecond, '1970-01-01', d.due_at))
           )
    into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    straight_join rowq.delayed d force index (primary)
        on d.part_id = p_part_id
       and d.due_at = m.due_at
       and d.message_id = j.message_id;
    if v_seen is not null then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.due_at)),
               json_arrayagg(if(h.group_key is null, null, h.message_id))
        into v_some, v_more
        from (
            select d.message_id, d.lane, d.attempt, d.group_key, j.due_at
            from json_table(
                v_seen, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[1]')
            ) j
            straight_join rowq.delayed d force index (primary)
                on d.part_id = p_part_id
               and d.due_at = timestamp'1970-01-01 00:00:00' + interval j.due_at microsecond
               and d.message_id = j.message_id
            for update /*!80000 of d */ skip locked
        ) h;
        delete d
        from json_table(
            v_some, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.delayed d force index (primary)
            on d.part_id = p_part_id
           and d.due_at = timestamp'1970-01-01 00:00:00' + interval j.due_at microsecond
           and d.message_id = j.message_id;
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(coalesce(p_tokenless, '[]'), coalesce(v_more, '[]'));
    end if;

    -- A message goes from its group to the ready ones, so look for it there first.
    select json_arrayagg(g.message_id) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    straight_join rowq.grouped g force index (primary)
        on g.part_id = p_part_id
       and g.group_key = m.group_key
       and g.message_id = j.message_id;
    if v_seen is not null then
        call rowq.internal_pop_grouped(p_part_id, v_seen, v_some, v_more);
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(coalesce(p_tokenless, '[]'), coalesce(v_more, '[]'));
    end if;

    -- A message that was never given back is in the tail lane of its priority, where its seq is the
    -- moment of its enqueued_at. Name the lanes by a join: MariaDB would look through all ready
    -- messages for each id if they stood in a list. The others that have a body are looked for
    -- among all ready messages.
    select json_arrayagg(json_array(r.message_id, r.lane, r.attempt, r.seq)) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    straight_join rowq.lane l force index (primary)
        on l.part_id = p_part_id
       and l.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
       and l.is_open
    straight_join rowq.ready r force index (primary)
        on r.part_id = p_part_id
       and r.lane = l.lane
       and r.seq = timestampdiff(microsecond, '1970-01-01', m.enqueued_at)
       and r.message_id = j.message_id;
    set v_seen = coalesce(v_seen, '[]');
    select json_arrayagg(j.message_id) into v_rest
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    left join (
        select distinct a.message_id
        from json_table(
            json_merge_preserve(coalesce(p_messages, '[]'), v_seen),
            '$[*]' columns (message_id bigint path '$[0]')
        ) a
    ) f on f.message_id = j.message_id
    where m.part_id = p_part_id
      and f.message_id is null;
    if v_rest is not null then
        select json_arrayagg(json_array(r.message_id, r.lane, r.attempt, r.seq)) into v_more
        from rowq.ready r force index (primary)
        straight_join (
            select distinct a.message_id
            from json_table(v_rest, '$[*]' columns (message_id bigint path '$')) a
        ) w on w.message_id = r.message_id
        where r.part_id = p_part_id
          and r.lane >= 0
          and r.message_id > 0;
        set v_seen = json_merge_preserve(v_seen, coalesce(v_more, '[]'));
    end if;
    if v_seen <> '[]' then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.seq)) into v_some
        from (
            select r.message_id, r.lane, r.attempt, r.seq
            from json_table(
                v_seen,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    seq bigint path '$[3]'
                )
            ) j
            straight_join rowq.ready r force index (primary)
                on r.part_id = p_part_id
               and r.lane = j.lane
               and r.seq = j.seq
               and r.message_id = j.message_id
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
