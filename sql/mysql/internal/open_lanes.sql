drop procedure if exists rowq.internal_open_lanes;

delimiter //
create procedure rowq.internal_open_lanes(p_part_id int, p_lane smallint)
sql security definer
modifies sql data
begin
-- routine   internal_open_lanes
-- purpose   Let dequeue look into a lane and its front companion.
-- promise   P02
-- locks     the rows of the two lanes, passing over locked ones
    declare v_locked int;
    -- Skip locked rows, so that no producer waits: their session is usually opening the lanes too.
    -- If the lanes stay closed, the next maintain finds the messages, and opens the lanes or has
    -- dequeue look into closed ones.
    select count(*) into v_locked
    from (
        select l.floor
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane in (p_lane, p_lane div 2 * 2)
        for update skip locked
    ) h;
    if v_locked > 0 then
        update rowq.lane l
        set l.is_open = true
        where l.part_id = p_part_id
          and l.lane in (p_lane, p_lane div 2 * 2)
          and not l.is_open;
    end if;
end//
delimiter ;
