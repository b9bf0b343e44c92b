drop procedure if exists rowq.resume_queue;

delimiter //
create procedure rowq.resume_queue(p_queue_name longtext)
sql security definer
modifies sql data
comment 'Resume the delivery of a queue.'
begin
-- routine   resume_queue
-- version   1
-- purpose   Resume the delivery of a queue.
-- promise   P18
-- locks     the queue row
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;

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

            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            -- Read the row again with a lock: the queue may have been dropped since.
            set v_queue_id = null;
            select q.queue_id into v_queue_id
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary)
            for update;
            if v_queue_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            update rowq.queue q
            set q.paused_at = null
            where q.queue_id = v_queue_id;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, 'resumed' as outcome;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
