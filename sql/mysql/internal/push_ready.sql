drop procedure if exists rowq.internal_push_ready;

delimiter //
create procedure rowq.internal_push_ready(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_push_ready
-- purpose   Append messages to lanes, in the order of the array, under new numbers.
-- promise   P02 P14 P36
-- locks     new ready and expiry rows; rows of lanes that are closed, passing over locked ones
    declare v_seq bigint;
    declare v_lane smallint default -1;
    declare v_expiring int;

    -- One look finds the lanes that are closed, and the first one whether messages expire, or may,
    -- because an old snapshot does not show them.
    lanes: loop
        select min(if(j.lane > v_lane and not l.is_open, j.lane, null)),
               coalesce(v_expiring, sum(m.expires_at is not null or m.message_id is null))
        into v_lane, v_expiring
        from json_table(
            p_messages,
            '$[*]' columns (message_id bigint path '$[0]', lane smallint path '$[1]')
        ) j
        straight_join rowq.lane l force index (primary)
            on l.part_id = p_part_id
           and l.lane = j.lane
        left join rowq.message m force index (primary)
            on m.message_id = j.message_id
           and v_expiring is null;
        if v_lane is null then
            leave lanes;
        end if;
        call rowq.internal_open_lane(p_part_id, v_lane);
    end loop;

    set v_seq = timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));

    insert into rowq.ready (part_id, lane, seq, message_id, attempt)
    select p_part_id, j.lane, v_seq + j.place, j.message_id, j.attempt
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;
    if v_expiring > 0 then
        call rowq.internal_note_expiry(p_part_id, p_messages, v_seq);
    end if;
end//
delimiter ;
