drop procedure if exists rowq.internal_rescan_floors;

delimiter //
create procedure rowq.internal_rescan_floors(
    p_part_id int,
    p_has_started boolean,
    p_has_results boolean,
    p_has_history boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_rescan_floors
-- purpose   Look for the first live row of every lane from its very start, those of started, result and history only if there may be one; put floors right, and open lanes.
-- promise   P13 P14
-- locks     rows of lanes, passing over locked ones
-- differs   PostgreSQL looks from a safe mark, and from the start once a minute
    declare c_duty int default 50;
    -- Times are in microseconds. A look that takes longer than c_short_walk has walked over dead
    -- rows. After one longer than c_long_walk the lane rests c_duty times as long, but never longer
    -- than c_longest_pause.
    declare c_short_walk bigint default 300;
    declare c_long_walk bigint default 20000;
    declare c_longest_pause bigint default 3600000000;
    declare v_lane smallint default -9;
    declare v_next smallint;
    declare v_is_open boolean;
    declare v_is_hidden boolean default false;
    declare v_floor, v_first, v_latest, v_worth_it, v_took, v_pause bigint;
    declare v_started, v_sweep_at datetime(6);
    declare v_marks longtext;

    -- Marks of sessions that could not open a lane: those that are there before the looks into the
    -- lanes are not needed after them.
    select json_arrayagg(l.lane) into v_marks
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane < -1000;

    lanes: loop
        set v_next = null;
        select l.lane, l.floor, l.is_open into v_next, v_floor, v_is_open
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane > v_lane
          and l.lane <> -6 /* expiry */
          and (p_has_started or l.lane <> -5 /* started */)
          and (p_has_results or l.lane <> -7 /* result */)
          and (p_has_history or l.lane <> -8 /* history */)
          and l.check_after <= utc_timestamp(6)
        order by l.part_id, l.lane
        limit 1;
        if v_next is null then
            leave lanes;
        end if;
        set v_lane = v_next;

        set v_started = utc_timestamp(6);
        call rowq.internal_first_key(p_part_id, v_lane, 0, v_first);
        set v_took = timestampdiff(microsecond, v_started, utc_timestamp(6));

        if v_lane >= 0 and v_first is not null and not v_is_open then
            -- The lane has messages but is closed: the transaction that was to open it has rolled
            -- back, or is still open.
            call rowq.internal_open_lane(p_part_id, v_lane);
            select l.is_open into v_is_open
            from rowq.lane l force index (primary)
            where l.part_id = p_part_id
              and l.lane = v_lane;
            if not v_is_open then
                -- An open transaction holds the row of the lane, so leave the row alone, and let
                -- dequeue look into closed lanes meanwhile.
                set v_is_hidden = true;
                iterate lanes;
            end if;
        end if;
        if v_lane in (-1 /* claim */, -3 /* finished */) then
            if v_first is null and v_took > c_short_walk then
                -- Where there is no row, take the next number for the first, because all later rows
                -- are above it.
                call rowq.internal_next_number(p_part_id, v_lane, v_first);
            end if;
            set v_first = coalesce(v_first, v_floor), v_worth_it = 400;
        else
            -- The floor stays half a second behind now, because messages of the last moments may
            -- not be committed yet.
            set v_latest = timestampdiff(microsecond, '1970-01-01', v_started) - 500000,
                v_first = least(coalesce(v_first, v_latest), v_latest),
                v_worth_it = 60000000;
        end if;
        if v_took > c_short_walk then
            set v_worth_it = 0;
        end if;
        if v_first < v_floor
           or (v_first > v_floor + v_worth_it and (v_is_open or v_lane < 0)) then
            call rowq.internal_move_floor(p_part_id, v_lane, v_floor, v_first);
        end if;

        -- After a long walk over dead rows, rest for fifty times as long as it took.
        if v_took > c_long_walk then
            set v_pause = least(v_took * c_duty, c_longest_pause);
            -- Skip a row that an open purge_archive holds.
            set v_next = null;
            select l.lane into v_next
            from rowq.lane l force index (primary)
            where l.part_id = p_part_id
              and l.lane = v_lane
            for update /*!80000 of l */ skip locked;
            if v_next is not null then
                update rowq.lane l
                set l.check_after = utc_timestamp(6) + interval v_pause microsecond
                where l.part_id = p_part_id
                  and l.lane = v_lane;
            end if;
        end if;
    end loop;

    -- A closed lane that rests was not looked into, and may be the one that a mark is for.
    set v_next = null;
    if v_marks is not null then
        select l.lane into v_next
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane >= 0
          and not l.is_open
          and l.check_after > utc_timestamp(6)
        limit 1;
    end if;
    if v_marks is not null and v_next is null then
        delete l
        from json_table(v_marks, '$[*]' columns (lane smallint path '$')) j
        straight_join rowq.lane l force index (primary)
            on l.part_id = p_part_id
           and l.lane = j.lane;
    end if;

    -- maintain may pass over the queue for five minutes while it is idle, but not while a lane
    -- rests, because to see that the queue is idle it would walk over the dead rows.
    set v_sweep_at = utc_timestamp(6) + interval 5 minute;
    set v_next = null;
    select l.lane into v_next
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane >= -8 /* history */
      and l.check_after > utc_timestamp(6)
    limit 1;
    if v_is_hidden or v_next is not null then
        set v_sweep_at = '1970-01-01';
    end if;
    -- This session is the one that is elected and holds the row of the claims' lane already, so the
    -- update waits for nobody.
    update rowq.lane l
    set l.is_open = v_is_hidden,
        l.sweep_at = v_sweep_at
    where l.part_id = p_part_id
      and l.lane = -1 /* claim */
      and (
          l.is_open <> v_is_hidden
          or l.sweep_at not between utc_timestamp(6) and v_sweep_at
      );
end//
delimiter ;
