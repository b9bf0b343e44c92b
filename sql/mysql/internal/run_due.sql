drop procedure if exists rowq.internal_run_due;

delimiter //
create procedure rowq.internal_run_due(
    p_part_id int,
    p_schedule_name varbinary(400),
    inout p_is_late boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_run_due
-- purpose   Run a schedule that is due in a transaction or under a savepoint of its own; an error in it is noted, or the next call tries again. p_is_late is as for internal_send_tick, and becomes true where a producer holds what it needs.
-- promise   P30 P31
-- locks     the part, shared; as internal_run_ticks: not waited for on MariaDB, for a second at
--           most on MySQL
-- commits   its own transaction where the caller has none; never the caller's
-- differs   the shortest wait that MySQL has is a second
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_refusal longtext;
    declare v_is_pinned boolean default coalesce(@rowq_pinned, false);

    attempt: loop
        begin
            declare v_errno int;
            declare v_state varchar(5);
            declare v_text longtext;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1
                    v_errno = mysql_errno, v_state = returned_sqlstate, v_text = message_text;
                set session innodb_lock_wait_timeout = v_patience;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_is_pinned and @rowq_pinned is null then
                    call rowq.internal_pin_session(@@timestamp);
                end if;
                if v_errno = 1205 and not p_is_late then
                    set p_is_late = true, v_tries_left = 1;
                end if;
                -- The caller must get the error where the caller's transaction is gone (1213, 1020,
                -- 1205), or where the call was killed (1317) or ran out of its time (1969, 3024).
                if v_errno in (1317, 1969, 3024)
                   or not v_owns_transaction
                   and (v_errno in (1213, 1020) or v_errno = 1205 and @@innodb_rollback_on_timeout)
                then
                    resignal;
                end if;
                -- What comes of locks or of the server's state is tried again by the next call,
                -- and so is a number that is used already (1062). What would be refused again is
                -- noted, and its tick is given up.
                if v_refusal is null
                   and left(v_state, 2) in ('45', '22', '23')
                   and v_errno <> 1062
                then
                    set v_refusal = v_text, v_tries_left = 1;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);
            set session innodb_lock_wait_timeout = /*!80000 1 */ /*M!100600 0 */;
            call rowq.internal_lock_part_shared(p_part_id, '');
            call rowq.internal_run_ticks(
                p_part_id, p_schedule_name, v_refusal, p_is_late, v_owns_transaction
            );
            set session innodb_lock_wait_timeout = v_patience;
            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
        if v_tries_left = 0 then
            leave attempt;
        end if;
    end loop;
end//
delimiter ;
