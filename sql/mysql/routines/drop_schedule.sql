drop procedure if exists rowq.drop_schedule;

delimiter //
create procedure rowq.drop_schedule(p_queue_name longtext, p_schedule_name longtext)
sql security definer
modifies sql data
comment 'Drop a schedule; messages already enqueued stay.'
begin
-- routine   drop_schedule
-- version   1
-- purpose   Drop a schedule; messages already enqueued stay.
-- promise   P15
-- locks     the queue, shared; the schedule row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
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
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            call rowq.internal_require_schedule(v_queue_id, p_schedule_name);
            delete from rowq.schedule
            where queue_id = v_queue_id
              and schedule_name = cast(p_schedule_name as binary);

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_schedule_name as schedule_name, 'dropped' as outcome;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
