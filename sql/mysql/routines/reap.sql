drop procedure if exists rowq.reap;

delimiter //
create procedure rowq.reap(p_queue_name longtext, p_batch_size int)
sql security definer
modifies sql data
comment 'Return unfinished messages of claims whose lease has expired.'
begin
-- routine   reap
-- version   1
-- purpose   Return unfinished messages of claims whose lease has expired.
-- promise   P03 P09 P34 P37 P45 P47
-- locks     the queue, shared; expired claim rows and message rows, skipping locked ones; new
--           history rows
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id, v_max_attempts, v_history_days, v_reaped, v_died int;

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

            call rowq.internal_check_batch_size(p_batch_size);

            set v_queue_id = null;
            select q.queue_id, q.max_attempts, q.history_days
            into v_queue_id, v_max_attempts, v_history_days
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_queue_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            call rowq.internal_reap(
                v_queue_id, v_max_attempts, v_history_days, coalesce(p_batch_size, 1000),
                v_owns_transaction, v_reaped, v_died
            );

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_reaped as reaped, v_died as died;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
