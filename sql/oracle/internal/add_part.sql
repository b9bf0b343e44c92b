procedure internal_add_part(p_part_id in number)
is
-- routine   internal_add_part
-- version   1
-- purpose   Insert the lanes of a new queue.
-- promise   P13
-- locks     new rows only
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing elsewhere: lanes only, as the queue row itself is what a drop locks
    v_lanes t_numbers;
    v_open  t_numbers;
begin
    for i in 1 .. 23 loop
        v_lanes(i) := i - 4;
        -- Open from the start: the default priority, the lane that most queues use.
        v_open(i) := case when i - 4 in (10, 11) then 1 else 0 end;
    end loop;

    forall i in 1 .. 23
        insert into rowq_lane (part_id, lane, is_open)
        values (p_part_id, v_lanes(i), v_open(i));
end internal_add_part;
