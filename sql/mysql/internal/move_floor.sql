drop procedure if exists rowq.internal_move_floor;

delimiter //
create procedure rowq.internal_move_floor(
    p_part_id int,
    p_lane smallint,
    p_from bigint,
    p_to bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_move_floor
-- purpose   Move the floor of a lane down, or up if it still is where the caller saw it.
-- promise   P13 P14
-- locks     the row of the lane, passed over when locked
-- differs   PostgreSQL keeps floors in a ledger, as its readers walk dead versions
    declare v_floor bigint;
    -- Skip a locked row: its session is already moving the floor or opening the lane.
    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = p_lane
    for update skip locked;
    if v_floor = p_from or p_to < v_floor then
        update rowq.lane l
        set l.floor = p_to
        where l.part_id = p_part_id
          and l.lane = p_lane;
    end if;
end//
delimiter ;
