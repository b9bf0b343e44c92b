drop procedure if exists rowq.promote;

delimiter //
create procedure rowq.promote(p_queue_name longtext, p_batch_size int)
sql security definer
modifies sql data
comment 'Make delayed messages ready that are due.'
begin
-- routine   promote
-- version   1
-- purpose   Make delayed messages ready that are due.
-- promise   P11 P45
-- locks     the queue, shared; delayed rows, skipping locked ones; new ready rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id, v_promoted int;

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
            -- The default session may truncate json_arrayagg at 1 MB; the keys of many messages are
            -- longer.
            /*M!100600 call rowq.internal_set_session(@@timestamp); */
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_check_batch_size(p_batch_size);

            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            call rowq.internal_promote(
                v_queue_id, coalesce(p_batch_size, 1000), v_owns_transaction, v_promoted
            );

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_promoted as promoted;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
