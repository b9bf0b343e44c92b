procedure internal_open_lanes_for(p_part_id in number, p_new in t_new_messages)
is
-- routine   internal_open_lanes_for
-- purpose   Let dequeue look into the lanes of new messages.
-- promise   P02
-- locks     as internal_open_lanes, only for a lane that was never used
-- differs   no such helper elsewhere: part of store
    -- The lane of the default priority is open from the start.
    c_default_lane constant pls_integer := 11;
    v_lanes t_lanes;
    v_open  t_numbers;
begin
    v_open(c_default_lane) := 1;
    for i in 1 .. p_new.count loop
        if not v_open.exists(p_new(i).lane) then
            if v_lanes.count = 0 then
                v_lanes := internal_open_lanes_of(p_part_id);
                for l in 1 .. v_lanes.count loop
                    v_open(v_lanes(l).lane) := 1;
                end loop;
            end if;
            if not v_open.exists(p_new(i).lane) then
                internal_open_lanes(p_part_id, p_new(i).lane);
                v_open(p_new(i).lane) := 1;
            end if;
        end if;
    end loop;
end internal_open_lanes_for;
