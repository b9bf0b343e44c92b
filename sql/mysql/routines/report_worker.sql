drop procedure if exists rowq.report_worker;

delimiter //
create procedure rowq.report_worker(
    p_queue_name longtext,
    p_worker_id longtext,
    p_worker_name longtext,
    p_host_name longtext,
    p_worker_version longtext,
    p_threads int,
    p_completed bigint,
    p_failed bigint,
    p_is_ended boolean
)
sql security definer
modifies sql data
comment 'Report that a worker runs, with its totals; call it about every 10 seconds.'
begin
-- routine   report_worker
-- version   1
-- purpose   Report that a worker runs, with its totals; call it about every 10 seconds.
-- promise   P15
-- locks     the queue, shared; the worker's row; the row of one gone worker
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_threads int default coalesce(p_threads, 1);
    declare v_completed bigint default coalesce(p_completed, 0);
    declare v_failed bigint default coalesce(p_failed, 0);
    declare v_id, v_gone varbinary(64);
    declare v_now datetime(6);

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

            if p_worker_id is null
               or char_length(p_worker_id) not between 1 and 64
               or p_worker_id regexp '[^A-Za-z0-9_.:-]' then
                call rowq.internal_refuse(
                    'worker_id must be 1 to 64 letters, digits, -, _, . or :'
                );
            end if;
            if char_length(p_worker_name) > 200
               or char_length(p_host_name) > 200
               or char_length(p_worker_version) > 200 then
                call rowq.internal_refuse(
                    'worker_name, host_name and worker_version must be at most 200 characters'
                );
            end if;
            call rowq.internal_check_text('worker_name', p_worker_name);
            call rowq.internal_check_text('host_name', p_host_name);
            call rowq.internal_check_text('worker_version', p_worker_version);
            call rowq.internal_check_range('threads', v_threads, 1, 100000);
            call rowq.internal_check_range('completed', v_completed, 0, 9007199254740992);
            call rowq.internal_check_range('failed', v_failed, 0, 9007199254740992);
            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            set v_id = p_worker_id, v_now = utc_timestamp(6), v_gone = null;

            if p_is_ended then
                delete w
                from rowq.worker w force index (primary)
                where w.queue_id = v_queue_id
                  and w.worker_id = v_id;
            else
                -- Assignments run in this order, so read the old values first.
                insert into rowq.worker (
                    queue_id, worker_id, worker_name, host_name, worker_version, threads,
                    started_at, last_seen_at, completed, failed
                )
                values (
                    v_queue_id, v_id, p_worker_name, p_host_name, p_worker_version, v_threads,
                    v_now, v_now, v_completed, v_failed
                )
                on duplicate key update
                    completed_per_second = if(
                        v_now > last_seen_at,
                        greatest(v_completed - completed, 0)
                        / (timestampdiff(microsecond, last_seen_at, v_now) / 1e6),
                        completed_per_second
                    ),
                    failed_per_second = if(
                        v_now > last_seen_at,
                        greatest(v_failed - failed, 0)
                        / (timestampdiff(microsecond, last_seen_at, v_now) / 1e6),
                        failed_per_second
                    ),
                    worker_name = p_worker_name,
                    host_name = p_host_name,
                    worker_version = p_worker_version,
                    threads = v_threads,
                    last_seen_at = greatest(last_seen_at, v_now),
                    completed = v_completed,
                    failed = v_failed;

                -- Delete at most one row per report. Read without a lock first, so that it waits
                -- for no other report.
                select w.worker_id into v_gone
                from rowq.worker w force index (primary)
                where w.queue_id = v_queue_id
                  and w.last_seen_at < v_now - interval 1 hour
                order by w.queue_id, w.worker_id
                limit 1;
                if v_gone is not null then
                    delete w
                    from rowq.worker w force index (primary)
                    where w.queue_id = v_queue_id
                      and w.worker_id = v_gone
                      and w.last_seen_at < v_now - interval 1 hour;
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, if(p_is_ended, 'ended', 'reported') as outcome;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
