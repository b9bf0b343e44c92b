drop procedure if exists rowq.internal_expire;

delimiter //
create procedure rowq.internal_expire(
    p_part_id int,
    p_archive_days int,
    p_limit int,
    out p_expired int
)
sql security definer
modifies sql data
begin
-- routine   internal_expire
-- purpose   Withdraw messages whose time has come, until p_limit is passed; return how many there were. Call it in a transaction of its own.
-- promise   P13 P36
-- locks     as internal_pop_expired; expiry rows; then as complete
    -- Times are in microseconds, and those of internal_rescan_floors.
    declare c_short_walk bigint default 300;
    declare c_long_walk bigint default 20000;
    -- The engine cuts an array of more than a megabyte, and keys of as many messages, written in
    -- hex, must fit into one.
    declare v_step_size int default least(p_limit, 250);
    declare v_most_seen bigint default 10 * p_limit;
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_started, v_now datetime(6) default utc_timestamp(6);
    declare v_latest bigint default timestampdiff(microsecond, '1970-01-01', v_now) - 500000;
    declare v_floor, v_first, v_took, v_pause bigint;
    declare v_is_checked boolean;
    declare v_since datetime(6);
    declare v_after bigint default 0;
    declare v_due, v_messages, v_tokenless, v_gone, v_some, v_kept longtext;
    declare v_seen, v_count int default 0;
    set p_expired = 0;

    -- Put the floor right first, so that what was committed late is found.
    select l.floor, l.check_after <= v_now into v_floor, v_is_checked
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -6 /* expiry */;
    call rowq.internal_first_key(p_part_id, -6 /* expiry */, if(v_is_checked, 0, v_floor), v_first);
    set v_since = v_epoch + interval v_first microsecond,
        v_took = timestampdiff(microsecond, v_now, utc_timestamp(6)),
        v_first = least(v_first, v_latest);
    if v_is_checked and v_took > c_long_walk then
        set v_pause = least(v_took * 50, 3600000000);
        update rowq.lane l
        set l.check_after = utc_timestamp(6) + interval v_pause microsecond
        where l.part_id = p_part_id
          and l.lane = -6 /* expiry */;
    end if;
    if v_first < v_floor
       or v_first > v_floor + if(v_took > c_short_walk, 0, 60000000) then
        call rowq.internal_move_floor(p_part_id, -6 /* expiry */, v_floor, v_first);
        set v_floor = v_first;
    end if;

    steps: while v_since <= v_now and v_seen < v_most_seen and p_expired < p_limit do
        -- One statement looks for the message in all places, so that none is missed on its way from
        -- one to another. A note may be there of a message that does not expire yet, or not at all:
        -- its writer could not see it.
        select json_arrayagg(json_array(
                   e.message_id, e.lane, e.seq,
                   case
                       when m.expires_at is null
                         or coalesce(r.message_id, d.message_id, b.message_id, g.message_id) is null
                           then null
                       when m.expires_at > v_now then 'later'
                       when r.message_id is not null then 'ready'
                       when d.message_id is not null then 'delayed'
                       when b.message_id is not null then 'blocked'
                       when g.message_id is not null then 'grouped'
                   end,
                   e.expiry_id, timestampdiff(microsecond, '1970-01-01', e.expires_at),
                   timestampdiff(microsecond, '1970-01-01', m.due_at),
                   timestampdiff(
                       microsecond, '1970-01-01', least(m.expires_at, v_now + interval 1 day)
                   )
               ))
        into v_due
        from (
            select x.expires_at, x.expiry_id, x.message_id, x.lane, x.seq
            from rowq.expiry x force index (primary)
            where x.part_id = p_part_id
              and x.expires_at >= v_since
              and x.expires_at <= v_now
              and (x.expires_at > v_since or x.expiry_id > v_after)
            order by x.part_id, x.expires_at, x.expiry_id
            limit v_step_size
        ) e
        left join rowq.message m force index (primary) on m.message_id = e.message_id
        left join rowq.ready r force index (primary)
            on r.part_id = p_part_id
           and r.lane = e.lane
           and r.seq = e.seq
           and r.message_id = e.message_id
        left join rowq.delayed d force index (primary)
            on d.part_id = p_part_id
           and d.due_at = m.due_at
           and d.message_id = m.message_id
        left join rowq.blocked b force index (primary)
            on b.part_id = p_part_id
           and b.message_id = m.message_id
        left join rowq.grouped g force index (primary)
            on g.part_id = p_part_id
           and g.group_key = m.group_key
           and g.message_id = m.message_id;
        if v_due is null then
            leave steps;
        end if;
        set v_count = json_length(v_due), v_seen = v_seen + v_count;

        call rowq.internal_pop_expired(p_part_id, v_due, v_messages, v_tokenless);
        if v_messages is not null then
            call rowq.internal_finish(
                p_part_id, p_archive_days, true, v_messages, v_tokenless, null, true, 'expired'
            );
            set p_expired = p_expired + json_length(v_messages);
        end if;

        -- A message that is in no place has ended, is dead, or is held by a claim, and who gives it
        -- back adds a row. One that another session holds now is looked for again, and one row of a
        -- message that expires later is put off.
        select json_arrayagg(
                   if(j.place is null or p.message_id is not null
                      or j.place = 'later' and j.turn > 1,
                      json_array(j.expiry_id, j.expires_at), null)
               ),
               json_arrayagg(
                   if(j.place <> 'later' and p.message_id is null,
                      json_array(j.expiry_id, j.expires_at), null)
               )
        into v_gone, v_some
        from (
            select x.message_id, x.place, x.expiry_id, x.expires_at,
                   row_number() over (
                       partition by x.message_id, x.place order by x.expiry_id
                   ) as turn
            from json_table(
                v_due,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    place varchar(20) path '$[3]',
                    expiry_id bigint path '$[4]',
                    expires_at bigint path '$[5]'
                )
            ) x
        ) j
        left join (
            select distinct a.message_id
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) a
        ) p on p.message_id = j.message_id;
        delete e
        from json_table(
            v_gone, '$[*]' columns (expiry_id bigint path '$[0]', expires_at bigint path '$[1]')
        ) j
        straight_join rowq.expiry e force index (primary)
            on e.part_id = p_part_id
           and e.expires_at = v_epoch + interval j.expires_at microsecond
           and e.expiry_id = j.expiry_id;
        if locate('"later"', v_due) > 0 then
            update json_table(
                v_due,
                '$[*]' columns (
                    place varchar(20) path '$[3]',
                    expiry_id bigint path '$[4]',
                    expires_at bigint path '$[5]',
                    later bigint path '$[7]'
                )
            ) j
            straight_join rowq.expiry e force index (primary)
                on e.part_id = p_part_id
               and e.expires_at = v_epoch + interval j.expires_at microsecond
               and e.expiry_id = j.expiry_id
            set e.expires_at = v_epoch + interval j.later microsecond
            where j.place = 'later';
        end if;
        set v_kept = if(v_kept is null, v_some, json_merge_preserve(v_kept, v_some)),
            v_since = v_epoch
                + interval json_extract(v_due, concat('$[', v_count - 1, '][5]')) microsecond,
            v_after = json_extract(v_due, concat('$[', v_count - 1, '][4]'));
        if v_count < v_step_size then
            leave steps;
        end if;
        -- Take the time anew, because what the end of a message has let go on has a row of a later
        -- moment.
        set v_now = utc_timestamp(6);
    end while;

    -- Put what is kept behind the others that are due, once it could stand in front of them: else a
    -- session that is idle in its transaction must not make every look write.
    if v_seen >= v_most_seen
       or v_seen > 0 and timestampdiff(microsecond, v_started, utc_timestamp(6)) > c_long_walk then
        update json_table(
            v_kept, '$[*]' columns (expiry_id bigint path '$[0]', expires_at bigint path '$[1]')
        ) j
        straight_join rowq.expiry e force index (primary)
            on e.part_id = p_part_id
           and e.expires_at = v_epoch + interval j.expires_at microsecond
           and e.expiry_id = j.expiry_id
        set e.expires_at = v_now;
    end if;
    if v_seen > 0 then
        call rowq.internal_first_key(p_part_id, -6 /* expiry */, v_floor, v_first);
        set v_first = least(v_first, v_latest);
        if v_first > v_floor then
            call rowq.internal_move_floor(p_part_id, -6 /* expiry */, v_floor, v_first);
        end if;
    end if;
end//
delimiter ;
