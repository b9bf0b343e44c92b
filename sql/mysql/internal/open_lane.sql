drop procedure if exists rowq.internal_open_lane;

delimiter //
create procedure rowq.internal_open_lane(p_part_id int, p_lane smallint)
sql security definer
modifies sql data
begin
-- routine   internal_open_lane
-- purpose   Let dequeue look into a lane, for a minute at least.
-- promise   P02
-- locks     the row of the lane, passed over when locked; else a new row of lane
    declare v_lane, v_mark smallint;
    -- Skip a locked row, so that no producer waits: its session is usually opening the lane too.
    select l.lane into v_lane
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = p_lane
    for update skip locked;
    if v_lane is not null then
        update rowq.lane l
        set l.is_open = true,
            l.sweep_at = utc_timestamp(6) + interval 1 minute
        where l.part_id = p_part_id
          and l.lane = p_lane
          and not l.is_open;
    else
        -- That session may roll back, or take long. So leave a mark, an open lane below -1000 that
        -- has no messages: while there is one, dequeue looks into closed lanes too. The next
        -- maintain finds the messages, opens the lane and deletes the mark.
        select l.lane into v_mark
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane < 0
          and l.is_open
        limit 1;
        if v_mark is null then
            -- Another session may have drawn the same number, and then there is a mark.
            insert ignore into rowq.lane (part_id, lane, is_open)
            values (p_part_id, -1001 - floor(31000 * rand()), true);
        end if;
    end if;
end//
delimiter ;
