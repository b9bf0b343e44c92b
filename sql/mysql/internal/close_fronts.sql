drop procedure if exists rowq.internal_close_fronts;

delimiter //
create procedure rowq.internal_close_fronts(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_close_fronts
-- purpose   Close the front lanes that are empty and were opened long enough ago, so that dequeue need not look there.
-- promise   P13
-- locks     rows of lanes, passing over locked ones
-- commits   its own transaction where the caller has none; never the caller's
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_lane, v_next, v_locked smallint;
    declare v_floor, v_first bigint;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);
            set v_lane = -1;

            -- A message that is put into a lane while it is closed waits for the next maintain. So
            -- leave that to a short transaction, and not to the caller's.
            lanes: while v_owns_transaction do
                set v_next = null;
                select l.lane, l.floor into v_next, v_floor
                from rowq.lane l force index (primary)
                where l.part_id = p_part_id
                  and l.lane > v_lane
                  and l.lane mod 2 = 0
                  and l.is_open
                  and l.sweep_at <= utc_timestamp(6)
                order by l.part_id, l.lane
                limit 1;
                if v_next is null then
                    leave lanes;
                end if;
                set v_lane = v_next, v_locked = null;

                select l.lane into v_locked
                from rowq.lane l force index (primary)
                where l.part_id = p_part_id
                  and l.lane = v_lane
                for update skip locked;
                call rowq.internal_first_key(p_part_id, v_lane, v_floor, v_first);
                if v_locked is not null and v_first is null then
                    -- The floor moves too, because nobody moves that of a closed lane.
                    update rowq.lane l
                    set l.is_open = false,
                        l.floor = greatest(
                            l.floor,
                            timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 500000
                        )
                    where l.part_id = p_part_id
                      and l.lane = v_lane;
                end if;
            end while;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;
