procedure internal_add_part(p_part_id in number)
is
-- routine   internal_add_part
-- purpose   Insert the lanes, the doors and the gate of a new queue.
-- promise   P13
-- locks     new rows only
-- differs   no such helper on PostgreSQL; no part, as the queue row itself is what a drop locks
    c_lanes constant pls_integer := 28;
    c_doors constant pls_integer := 64;
    v_lanes t_numbers;
    v_open  t_numbers;
    v_doors t_numbers;
begin
    for i in 1 .. c_lanes loop
        v_lanes(i) := i - 9;
        -- The lanes of the default priority are open from the start, because most queues use no
        -- others.
        v_open(i) := case when v_lanes(i) in (10, 11) then 1 else 0 end;
    end loop;
    forall i in 1 .. c_lanes
        insert into rowq_lane (part_id, lane, is_open)
        values (p_part_id, v_lanes(i), v_open(i));

    for i in 1 .. c_doors loop
        v_doors(i) := i - 1;
    end loop;
    forall i in 1 .. c_doors
        insert into rowq_door (part_id, door_no)
        values (p_part_id, v_doors(i));
    insert into rowq_gate (part_id)
    values (p_part_id);
end internal_add_part;
