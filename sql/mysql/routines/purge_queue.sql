drop procedure if exists rowq.purge_queue;

delimiter //
create procedure rowq.purge_queue(p_queue_name longtext, p_include_dead boolean, p_max_messages int)
sql security definer
modifies sql data
comment 'Delete ready, delayed and blocked messages; leased ones stay with their workers.'
begin
-- routine   purge_queue
-- version   1
-- purpose   Delete ready, delayed and blocked messages; leased ones stay with their workers.
-- promise   P15
-- locks     the queue, shared; blocked, group_waiting, ready, delayed and dead rows, skipping
--           locked ones; then as complete
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ705 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_blocked, v_in_groups, v_ready, v_delayed, v_dead bigint default 0;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_errno = 1205 and (v_owns_transaction or not @@innodb_rollback_on_timeout) then
                    -- A wait, such as for a result, ends with innodb_lock_wait_timeout. If it ended
                    -- the caller's transaction, raise the engine's error.
                    signal sqlstate '45705' set message_text =
                        'RQ705 queue_busy: an open transaction has locked a message; retry';
                end if;
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            -- By default the session may cut json_arrayagg at 1 MB: raise the limit.
            /*M!100600 call rowq.internal_set_session(@@timestamp); */
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_check_range('max_messages', p_max_messages, 1, 10000);

            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            -- Purge blocked messages first: nothing may resume them or pass a slot to them.
            call rowq.internal_purge_blocked(
                v_queue_id, p_max_messages, v_owns_transaction, v_blocked
            );
            call rowq.internal_purge_group_waiting(
                v_queue_id, p_max_messages - v_blocked, v_owns_transaction, v_in_groups
            );
            set v_blocked = v_blocked + v_in_groups;
            call rowq.internal_purge_ready(
                v_queue_id, p_max_messages - v_blocked, v_owns_transaction, v_ready
            );
            call rowq.internal_purge_waiting(
                v_queue_id, false, p_max_messages - v_blocked - v_ready, v_owns_transaction,
                v_delayed
            );
            if p_include_dead then
                call rowq.internal_purge_waiting(
                    v_queue_id, true, p_max_messages - v_blocked - v_ready - v_delayed,
                    v_owns_transaction, v_dead
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_blocked + v_ready + v_delayed + v_dead as removed;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
