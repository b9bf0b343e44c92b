drop procedure if exists rowq.internal_sweep_again;

delimiter //
create procedure rowq.internal_sweep_again(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_sweep_again
-- purpose   Keep the next maintain from passing over a queue whose archive has more to be done.
-- promise   P19
-- locks     a row of lane, passed over when locked
-- commits   its own transaction where the caller has none; never the caller's
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_lane smallint;

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
            set v_lane = null;
            select l.lane into v_lane
            from rowq.lane l force index (primary)
            where l.part_id = p_part_id
              and l.lane = -1 /* claim */
            for update skip locked;
            if v_lane is not null then
                update rowq.lane l
                set l.sweep_at = '1970-01-01'
                where l.part_id = p_part_id
                  and l.lane = -1 /* claim */;
            end if;
            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;
