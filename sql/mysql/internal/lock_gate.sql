drop procedure if exists rowq.internal_lock_gate;

delimiter //
create procedure rowq.internal_lock_gate(p_part_id int, out p_last_claim_id bigint)
sql security definer
modifies sql data
begin
-- routine   internal_lock_gate
-- purpose   Lock the gate of a limited queue and return its last claim; null where that could not be done in a tenth of a second.
-- promise   P28 P29
-- locks     the gate of the queue, tried for a tenth of a second
    declare v_naps_left int default 10;
    set p_last_claim_id = null;

    tries: loop
        select g.last_claim_id into p_last_claim_id
        from rowq.gate g
        where g.part_id = p_part_id
        for update skip locked;
        if p_last_claim_id is not null or v_naps_left = 0 then
            leave tries;
        end if;
        -- Nap between tries, because the shortest time-out for a lock is a second.
        set v_naps_left = v_naps_left - 1;
        if sleep(0.01) then
            signal sqlstate '70100'
                set mysql_errno = 1317, message_text = 'Query execution was interrupted';
        end if;
    end loop;
end//
delimiter ;
