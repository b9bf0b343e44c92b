drop procedure if exists rowq.internal_run_schedules;

delimiter //
create procedure rowq.internal_run_schedules(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_run_schedules
-- purpose   Run the schedules of a queue that are due and that no other session is running.
-- promise   P30 P31
-- locks     as internal_run_due
-- commits   its own transaction where the caller has none; never the caller's
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_names longtext;
    declare v_at int default 0;
    declare v_is_late boolean default false;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked. A
    -- thousand of the longest names fit into what group_concat_max_len is at least.
    select json_arrayagg(hex(h.schedule_name)) into v_names
    from (
        select s.schedule_name, s.overlap
        from rowq.schedule s force index (primary)
        where s.part_id = p_part_id
          and s.next_run_at <= v_now
        limit 1000
    ) h;
    while v_at < coalesce(json_length(v_names), 0) do
        -- Wait for a producer that opens a group once a call: after that messages join their groups
        -- when they are promoted, so that no tick is missed.
        call rowq.internal_run_due(
            p_part_id, unhex(json_unquote(json_extract(v_names, concat('$[', v_at, ']')))),
            v_is_late
        );
        set v_at = v_at + 1;
    end while;
end//
delimiter ;
