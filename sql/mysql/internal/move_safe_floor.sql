drop procedure if exists rowq.internal_move_safe_floor;

delimiter //
create procedure rowq.internal_move_safe_floor(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_move_safe_floor
-- purpose   Move the floor from which a limited queue's claims are counted up to the first one that is there or may yet be committed.
-- promise   P13 P28
-- locks     the gate, passed over when locked; as internal_has_late_claim
-- commits   its own transaction where the caller has none; never the caller's
-- differs   PostgreSQL has such a floor for each lane
    declare c_worth_it int default 400;
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_floor, v_last, v_first bigint;
    declare v_has_late boolean;

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
            set v_last = null;

            -- In the caller's transaction the gate would be locked to its end. While this session
            -- has it, no dequeue that counts can add a claim.
            if v_owns_transaction then
                select g.last_claim_id into v_last
                from rowq.gate g
                where g.part_id = p_part_id
                for update skip locked;
            end if;
            if v_last is not null then
                select l.floor into v_floor
                from rowq.lane l force index (primary)
                where l.part_id = p_part_id
                  and l.lane = -9 /* counted claim */;
                call rowq.internal_first_key(p_part_id, -1 /* claim */, v_floor, v_first);
                -- Never pass the last claim that was counted: internal_note_start compares new ones
                -- with that.
                set v_first = least(coalesce(v_first, v_last + 1), v_last + 1);
                if v_first > v_floor + c_worth_it then
                    call rowq.internal_has_late_claim(
                        p_part_id, v_floor, v_first, v_has_late
                    );
                    if not v_has_late then
                        call rowq.internal_move_floor(
                            p_part_id, -9 /* counted claim */, v_floor, v_first
                        );
                    end if;
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;
