drop procedure if exists rowq.alter_queue;

delimiter //
create procedure rowq.alter_queue(
    p_queue_name longtext,
    p_lease_seconds int,
    p_max_attempts int,
    p_backoff_base_seconds double,
    p_backoff_factor double,
    p_backoff_cap_seconds double,
    p_backoff_jitter double,
    p_archive_days int,
    p_max_body_length int,
    p_group_limit int,
    p_group_after_dead longtext,
    p_group_pause_seconds double,
    p_max_leased int,
    p_rate_limit int,
    p_rate_seconds double,
    p_result_seconds double,
    p_history_days int
)
sql security definer
modifies sql data
comment 'Change settings of a queue; null leaves a setting unchanged.'
begin
-- routine   alter_queue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting unchanged.
-- promise   P15
-- locks     the queue row; new deferred rows; if max_leased is new, a row of lane
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id, v_group_limit, v_max_leased int;

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

            call rowq.internal_check_settings(
                p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
                p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
                p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
                p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds,
                p_history_days
            );

            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            -- Read the row again with a lock: the queue may have been dropped since.
            set v_queue_id = null;
            select q.queue_id, q.group_limit, q.max_leased
            into v_queue_id, v_group_limit, v_max_leased
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary)
            for update;
            if v_queue_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            update rowq.queue q
            set q.lease_seconds        = coalesce(p_lease_seconds, q.lease_seconds),
                q.max_attempts         = coalesce(p_max_attempts, q.max_attempts),
                q.backoff_base_seconds = coalesce(p_backoff_base_seconds, q.backoff_base_seconds),
                q.backoff_factor       = coalesce(p_backoff_factor, q.backoff_factor),
                q.backoff_cap_seconds  = coalesce(p_backoff_cap_seconds, q.backoff_cap_seconds),
                q.backoff_jitter       = coalesce(p_backoff_jitter, q.backoff_jitter),
                q.archive_days         = coalesce(p_archive_days, q.archive_days),
                q.max_body_length      = coalesce(p_max_body_length, q.max_body_length),
                q.group_limit          = coalesce(p_group_limit, q.group_limit),
                q.group_after_dead     = coalesce(p_group_after_dead, q.group_after_dead),
                q.group_pause_seconds  = coalesce(p_group_pause_seconds, q.group_pause_seconds),
                q.max_leased           = coalesce(p_max_leased, q.max_leased),
                q.rate_limit           = coalesce(p_rate_limit, q.rate_limit),
                q.rate_seconds         = coalesce(p_rate_seconds, q.rate_seconds),
                q.has_started          = q.has_started or coalesce(p_rate_limit, 0) > 0,
                q.result_seconds       = coalesce(p_result_seconds, q.result_seconds),
                q.has_results          = q.has_results or coalesce(p_result_seconds, 0) > 0,
                q.history_days         = coalesce(p_history_days, q.history_days),
                q.has_history          = q.has_history or coalesce(p_history_days, 0) > 0
            where q.queue_id = v_queue_id;
            if p_group_limit > v_group_limit then
                call rowq.internal_defer_group_checks(v_queue_id);
            end if;
            if p_max_leased > 0 and v_max_leased = 0 then
                -- Without a limit this floor was not maintained: reset it.
                update rowq.lane l
                set l.floor = 0
                where l.queue_id = v_queue_id
                  and l.lane = -9 /* counted claim */;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, 'altered' as outcome;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
