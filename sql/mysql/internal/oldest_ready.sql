drop procedure if exists rowq.internal_oldest_ready;

delimiter //
create procedure rowq.internal_oldest_ready(p_part_id int, out p_enqueued_at datetime(6))
sql security definer
reads sql data
begin
-- routine   internal_oldest_ready
-- purpose   Find when the oldest message at the head of a lane was enqueued; null where there is none.
-- promise   P13
    declare v_lane smallint default -32768;
    declare v_next, v_attempt smallint;
    declare v_is_hidden boolean default false;
    declare v_floor, v_message_id bigint;
    declare v_head datetime(6);
    set p_enqueued_at = null;

    lanes: loop
        set v_next = null;
        select l.lane, l.floor into v_next, v_floor
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane > v_lane
          and (l.is_open or v_is_hidden)
        order by l.part_id, l.lane
        limit 1;
        if v_next is null then
            leave lanes;
        end if;
        if v_next < 0 then
            -- Look into closed lanes too: there are messages, but an open transaction keeps others
            -- from opening the lanes.
            set v_is_hidden = true, v_lane = -1;
            iterate lanes;
        end if;

        set v_lane = v_next, v_message_id = null, v_head = null;
        select r.message_id, r.attempt into v_message_id, v_attempt
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id
          and r.lane = v_lane
          and r.seq >= v_floor
          and r.seq < 9223372036854775806
        order by r.part_id, r.lane, r.seq, r.message_id
        limit 1;
        select m.enqueued_at into v_head
        from rowq.message m force index (primary)
        where m.message_id = v_message_id;
        set p_enqueued_at = least(coalesce(p_enqueued_at, v_head), coalesce(v_head, p_enqueued_at));
    end loop;
end//
delimiter ;
