drop procedure if exists rowq.create_schedule;

delimiter //
create procedure rowq.create_schedule(
    p_queue_name longtext,
    p_schedule_name longtext,
    p_cron longtext,
    p_interval_seconds double,
    p_time_zone longtext,
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_max_attempts int,
    p_group_key longtext,
    p_missed longtext,
    p_overlap boolean,
    p_starts_at datetime(6),
    p_ends_at datetime(6),
    p_counts_from longtext
)
sql security definer
modifies sql data
comment 'Create a schedule that enqueues a message by cron or interval.'
begin
-- routine   create_schedule
-- version   1
-- purpose   Create a schedule that enqueues a message by cron or interval.
-- promise   P15 P30 P31 P48
-- locks     the queue, shared; the new schedule row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   a time zone other than UTC needs the server's time zone tables, and has no tick after
--           2037
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_outcome varchar(20);
    declare v_starts_at, v_next_run_at datetime(6);

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
            set v_starts_at = coalesce(p_starts_at, utc_timestamp(6));
            call rowq.internal_check_schedule(
                v_queue_id, p_schedule_name, p_cron, p_interval_seconds,
                coalesce(p_time_zone, 'UTC'), p_body, p_body_binary, p_message_type, p_headers,
                coalesce(p_priority, 5), p_max_attempts, p_group_key, coalesce(p_missed, 'once'),
                v_starts_at, p_ends_at, coalesce(p_counts_from, 'start'), v_next_run_at
            );
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);
            set v_outcome = 'created';
            begin
                -- The name exists. Read with a lock: an old snapshot may not show it.
                declare exit handler for 1062
                begin
                    set v_outcome = 'exists';
                    select s.next_run_at into v_next_run_at
                    from rowq.schedule s force index (primary)
                    where s.queue_id = v_queue_id
                      and s.schedule_name = cast(p_schedule_name as binary)
                    lock in share mode;
                end;
                insert into rowq.schedule (
                    queue_id, schedule_name, cron, interval_seconds, time_zone, missed, overlap,
                    starts_at, ends_at, message_type, headers, priority, group_key, max_attempts,
                    body, body_binary, next_run_at, counts_from
                )
                values (
                    v_queue_id, cast(p_schedule_name as binary), p_cron, p_interval_seconds,
                    coalesce(p_time_zone, 'UTC'), coalesce(p_missed, 'once'),
                    coalesce(p_overlap, true) and coalesce(p_counts_from, 'start') = 'start',
                    v_starts_at, p_ends_at, p_message_type, p_headers,
                    coalesce(p_priority, 5), p_group_key, p_max_attempts, p_body, p_body_binary,
                    v_next_run_at, coalesce(p_counts_from, 'start')
                );
            end;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_schedule_name as schedule_name, v_outcome as outcome, v_next_run_at as next_run_at;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
