drop procedure if exists rowq.internal_maintain_history;

delimiter //
create procedure rowq.internal_maintain_history(p_part_id int, p_limit int, out p_purged int)
sql security definer
modifies sql data
begin
-- routine   internal_maintain_history
-- purpose   Run the history part of maintain, a queue's first p_limit old attempts; an error in it is a warning.
-- promise   P19 P37
-- locks     the part, shared; as purge_history
-- commits   its own transaction where the caller has none; never the caller's
-- differs   PostgreSQL has it in maintain_queue, in a block of its own
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_history_days int;
    declare v_queue_name longtext;

    attempt: loop
        begin
            declare v_errno int;
            declare v_text varchar(128);
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno, v_text = message_text;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                set p_purged = 0;
                -- As in internal_maintain_archive: these are the caller's to know.
                if (v_errno in (1213, 1020) and not v_owns_transaction)
                   or v_errno in (1317, 1969, 3024) then
                    resignal;
                end if;
                if v_tries_left = 0 then
                    set v_text = left(concat('rowq history: ', v_text), 128);
                    signal sqlstate '01000' set message_text = v_text;
                end if;
            end;
            set p_purged = 0, v_history_days = null;
            call rowq.internal_begin_work(v_owns_transaction);
            select q.history_days, convert(q.queue_name using utf8mb4)
            into v_history_days, v_queue_name
            from rowq.queue q
            where q.part_id = p_part_id;
            -- drop_queue locks these rows in another order.
            call rowq.internal_lock_part_shared(p_part_id, coalesce(v_queue_name, ''));
            call rowq.internal_purge_history(p_part_id, v_history_days, p_limit, p_purged);
            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
        if v_tries_left = 0 then
            leave attempt;
        end if;
    end loop;
end//
delimiter ;
