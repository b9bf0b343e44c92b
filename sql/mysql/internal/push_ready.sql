drop procedure if exists rowq.internal_push_ready;

delimiter //
create procedure rowq.internal_push_ready(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_push_ready
-- purpose   Append messages to lanes, in the order of the array, under new numbers.
-- promise   P02 P14
-- locks     new ready rows; rows of lanes that are closed, passing over locked ones
    declare v_seq bigint;
    declare v_lane smallint default -1;

    lanes: loop
        select min(j.lane) into v_lane
        from json_table(p_messages, '$[*]' columns (lane smallint path '$[1]')) j
        straight_join rowq.lane l force index (primary)
            on l.part_id = p_part_id
           and l.lane = j.lane
        where j.lane > v_lane
          and not l.is_open;
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
end//
delimiter ;
