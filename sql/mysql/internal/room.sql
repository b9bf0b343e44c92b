drop procedure if exists rowq.internal_room;

delimiter //
create procedure rowq.internal_room(
    p_part_id int,
    p_wanted int,
    p_max_leased int,
    p_rate_limit int,
    p_rate_seconds double,
    out p_room int
)
sql security definer
reads sql data
begin
-- routine   internal_room
-- purpose   Return how many of the wanted messages a queue's limits leave room for at this moment.
-- promise   P28 P29
    declare v_since datetime(6) default
        utc_timestamp(6) - interval round(p_rate_seconds * 1000000) microsecond;
    set p_room = p_wanted;

    if p_max_leased > 0 then
        -- Begin at the safe floor of the claims, because one that was committed late counts, too.
        select least(
                   p_room,
                   p_max_leased - coalesce(
                       sum(coalesce(json_length(c.messages), c.last_id - c.first_id + 1)), 0
                   )
               )
        into p_room
        from rowq.lane l force index (primary)
        straight_join rowq.claim c force index (primary)
            on c.part_id = l.part_id
           and c.claim_id >= l.floor
        where l.part_id = p_part_id
          and l.lane = -9 /* counted claim */
          and c.claim_id > 0;
    end if;
    if p_rate_limit > 0 and p_room > 0 then
        select least(p_room, p_rate_limit - coalesce(sum(s.messages), 0)) into p_room
        from rowq.started s force index (primary)
        where s.part_id = p_part_id
          and s.started_at > v_since;
    end if;
    set p_room = greatest(p_room, 0);
end//
delimiter ;
