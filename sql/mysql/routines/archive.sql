drop procedure if exists rowq.archive;

delimiter //
create procedure rowq.archive(p_queue_name longtext, p_batch_size int)
sql security definer
modifies sql data
comment 'Move finished messages to the archive, if the queue has archive_days.'
begin
-- routine   archive
-- version   1
-- purpose   Move finished messages to the archive, if the queue has archive_days.
-- promise   P19 P45
-- locks     finished rows, skipping locked ones; message rows; new archive rows
-- commits   its own transaction if the caller has none, and implicitly; never the caller's
-- errors    RQ701 RQ711
-- differs   in an open transaction no partition is added
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id, v_archived int;

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
                call rowq.internal_open_days(v_queue_id, coalesce(p_batch_size, 1000));
                call rowq.internal_begin_work(v_owns_transaction);
            end if;
            call rowq.internal_archive(
                v_queue_id, coalesce(p_batch_size, 1000), v_owns_transaction, v_archived
            );

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_archived as archived;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
