drop procedure if exists rowq.purge_archive;

delimiter //
create procedure rowq.purge_archive(p_queue_name longtext, p_batch_size int)
sql security definer
modifies sql data
comment 'Delete archived messages past archive_days and attempts past history_days.'
begin
-- routine   purge_archive
-- version   1
-- purpose   Delete archived messages past archive_days and attempts past history_days.
-- promise   P19 P37
-- locks     archive rows; the queue, shared; a row of lane, history rows; for a drop the archive,
--           waits up to 1 s
-- commits   its own transaction if the caller has none, and implicitly; never the caller's
-- errors    RQ701 RQ711
-- differs   in an open transaction no partition is dropped
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id, v_archive_days, v_history_days, v_purged int;
    declare v_has_history boolean;
    declare v_dropped int default 0;
    declare v_attempts int;

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

            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            if v_owns_transaction then
                call rowq.internal_commit_work(v_owns_transaction);
                call rowq.internal_drop_days(v_dropped);
                call rowq.internal_begin_work(v_owns_transaction);
            end if;
            select q.archive_days, q.has_history, q.history_days
            into v_archive_days, v_has_history, v_history_days
            from rowq.queue q
            where q.queue_id = v_queue_id;
            call rowq.internal_purge_archive(
                v_queue_id, utc_timestamp(6) - interval v_archive_days day,
                coalesce(p_batch_size, 1000), v_owns_transaction, v_purged
            );
            set v_attempts = 0;
            if v_has_history then
                -- drop_queue locks the rows below in another order.
                call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
                call rowq.internal_purge_history(
                    v_queue_id, v_history_days, coalesce(p_batch_size, 1000), v_attempts
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_purged + v_attempts as purged, v_dropped as partitions_dropped;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
