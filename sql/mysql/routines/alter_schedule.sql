drop procedure if exists rowq.alter_schedule;

delimiter //
create procedure rowq.alter_schedule(
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
    p_is_paused boolean,
    p_counts_from longtext
)
sql security definer
modifies sql data
comment 'Change, pause or resume a schedule; null leaves a setting unchanged.'
begin
-- routine   alter_schedule
-- version   1
-- purpose   Change, pause or resume a schedule; null leaves a setting unchanged.
-- promise   P15 P31 P48
-- locks     the queue, shared; the schedule row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
-- differs   time zones as in create_schedule
    declare v_owns_transaction, v_overlap, v_is_paused, v_is_running boolean;
    declare v_tries_left int default 5;
    declare v_queue_id, v_priority, v_max_attempts int;
    declare v_cron, v_time_zone, v_body, v_message_type, v_headers, v_group_key, v_missed longtext;
    declare v_counts_from longtext;
    declare v_body_binary longblob;
    declare v_interval_seconds double;
    declare v_starts_at, v_ends_at, v_next_run_at datetime(6);

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
            -- A new kind of time, or of body, replaces the other. Read with a lock: an old snapshot
            -- shows the old row.
            select if(coalesce(p_cron, p_interval_seconds) is null, s.cron, p_cron),
                   if(
                       coalesce(p_cron, p_interval_seconds) is null,
                       s.interval_seconds, p_interval_seconds
                   ),
                   if(coalesce(p_body, p_body_binary) is null, s.body, p_body),
                   if(coalesce(p_body, p_body_binary) is null, s.body_binary, p_body_binary),
                   coalesce(p_time_zone, s.time_zone), coalesce(p_message_type, s.message_type),
                   coalesce(p_headers, s.headers), coalesce(p_priority, s.priority),
                   coalesce(p_max_attempts, s.max_attempts),
                   coalesce(p_group_key, convert(s.group_key using utf8mb4)),
                   coalesce(p_missed, s.missed), coalesce(p_overlap, s.overlap),
                   coalesce(p_starts_at, s.starts_at), coalesce(p_ends_at, s.ends_at),
                   coalesce(p_is_paused, s.is_paused), coalesce(p_counts_from, s.counts_from),
                   coalesce(p_counts_from, s.counts_from) = 'end'
                   and (s.is_running or s.counts_from = 'start')
            into v_cron, v_interval_seconds, v_body, v_body_binary, v_time_zone, v_message_type,
                 v_headers, v_priority, v_max_attempts, v_group_key, v_missed, v_overlap,
                 v_starts_at, v_ends_at, v_is_paused, v_counts_from, v_is_running
            from rowq.schedule s force index (primary)
            where s.queue_id = v_queue_id
              and s.schedule_name = cast(p_schedule_name as binary)
            for update;
            -- A schedule that can no longer run can still be paused.
            if not coalesce(p_is_paused, false) or coalesce(
                p_cron, p_interval_seconds, p_time_zone, p_body, p_body_binary, p_message_type,
                p_headers, p_priority, p_max_attempts, p_group_key, p_missed, p_overlap,
                p_starts_at, p_ends_at, p_counts_from
            ) is not null then
                call rowq.internal_check_schedule(
                    v_queue_id, p_schedule_name, v_cron, v_interval_seconds, v_time_zone, v_body,
                    v_body_binary, v_message_type, v_headers, v_priority, v_max_attempts,
                    v_group_key, v_missed, v_starts_at, v_ends_at, v_counts_from, v_next_run_at
                );
            end if;
            if v_is_running and v_starts_at <= utc_timestamp(6) then
                set v_next_run_at = utc_timestamp(6) + interval 1 second;
            end if;
            if v_is_paused then
                set v_next_run_at = null;
            end if;

            update rowq.schedule s
            set s.cron             = v_cron,
                s.interval_seconds = v_interval_seconds,
                s.time_zone        = v_time_zone,
                s.missed           = v_missed,
                s.overlap          = v_overlap and v_counts_from = 'start',
                s.starts_at        = v_starts_at,
                s.ends_at          = v_ends_at,
                s.message_type     = v_message_type,
                s.headers          = v_headers,
                s.priority         = v_priority,
                s.group_key        = v_group_key,
                s.max_attempts     = v_max_attempts,
                s.body             = v_body,
                s.body_binary      = v_body_binary,
                s.is_paused        = v_is_paused,
                s.next_run_at      = v_next_run_at,
                s.last_error       = null,
                s.counts_from      = v_counts_from,
                s.is_running       = v_is_running
            where s.queue_id = v_queue_id
              and s.schedule_name = cast(p_schedule_name as binary);

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_schedule_name as schedule_name, 'altered' as outcome, v_next_run_at as next_run_at;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
