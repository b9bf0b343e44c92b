drop procedure if exists rowq.run_schedule;

delimiter //
create procedure rowq.run_schedule(p_queue_name longtext, p_schedule_name longtext)
sql security definer
modifies sql data
comment 'Enqueue the message of a schedule now, even if paused; its next run is unchanged.'
begin
-- routine   run_schedule
-- version   1
-- purpose   Enqueue the message of a schedule now, even if paused; its next run is unchanged.
-- promise   P15
-- locks     the queue, shared; the schedule row; as enqueue
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_now datetime(6);
    declare v_message_id bigint;
    declare v_outcome varchar(20);

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
            set v_now = utc_timestamp(6);
            call rowq.internal_enqueue_tick(
                v_queue_id, cast(p_schedule_name as binary), v_now, false, v_owns_transaction,
                v_message_id, v_outcome
            );
            if v_outcome = 'enqueued' then
                update rowq.schedule s
                set s.last_run_at     = v_now,
                    s.last_message_id = v_message_id,
                    s.is_running      = s.counts_from = 'end',
                    s.next_run_at     = if(
                        s.counts_from = 'end' and s.next_run_at is not null,
                        v_now + interval 1 second, s.next_run_at
                    )
                where s.queue_id = v_queue_id
                  and s.schedule_name = cast(p_schedule_name as binary);
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_message_id as message_id, v_outcome as outcome;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
