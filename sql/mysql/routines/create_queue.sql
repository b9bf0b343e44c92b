drop procedure if exists rowq.create_queue;

delimiter //
create procedure rowq.create_queue(
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
comment 'Create a queue; leave an existing queue unchanged.'
begin
-- routine   create_queue
-- version   1
-- purpose   Create a queue; leave an existing queue unchanged.
-- promise   P15
-- locks     the new rows of queue, queue_lock, limit_lock and lane
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
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
            if v_outcome is null then
                -- Set the session: auto_increment_increment must not waste queue ids, which are
                -- few.
                call rowq.internal_set_session(@@timestamp);
            end if;
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_check_settings(
                p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
                p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
                p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
                p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds,
                p_history_days
            );

            set v_queue_id = null, v_outcome = 'exists';
            -- Check first: an insert that conflicts uses up an id.
            select q.queue_id into v_queue_id
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_queue_id is null then
                begin
                    -- Another session has created the queue. If there is none of that name,
                    -- queue_id was the duplicate: an error.
                    declare exit handler for 1062
                    begin
                        select q.queue_id into v_queue_id
                        from rowq.queue q
                        where q.queue_name = cast(p_queue_name as binary)
                        lock in share mode;
                        if v_queue_id is null then
                            resignal;
                        end if;
                    end;
                    insert into rowq.queue (
                        queue_name, lease_seconds, max_attempts, backoff_base_seconds,
                        backoff_factor, backoff_cap_seconds, backoff_jitter, archive_days,
                        max_body_length, group_limit, group_after_dead, group_pause_seconds,
                        max_leased, rate_limit, rate_seconds, has_started, result_seconds,
                        has_results, history_days, has_history, created_at
                    )
                    values (
                        cast(p_queue_name as binary), coalesce(p_lease_seconds, 30),
                        coalesce(p_max_attempts, 10), coalesce(p_backoff_base_seconds, 5),
                        coalesce(p_backoff_factor, 2), coalesce(p_backoff_cap_seconds, 3600),
                        coalesce(p_backoff_jitter, 0.2), coalesce(p_archive_days, 0),
                        coalesce(p_max_body_length, 1048576), coalesce(p_group_limit, 1),
                        coalesce(p_group_after_dead, 'continue'),
                        coalesce(p_group_pause_seconds, 0), coalesce(p_max_leased, 0),
                        coalesce(p_rate_limit, 0), coalesce(p_rate_seconds, 1),
                        coalesce(p_rate_limit, 0) > 0, coalesce(p_result_seconds, 0),
                        coalesce(p_result_seconds, 0) > 0, coalesce(p_history_days, 0),
                        coalesce(p_history_days, 0) > 0, utc_timestamp(6)
                    );
                    set v_outcome = 'created';
                end;
                if v_outcome = 'created' then
                    call rowq.internal_add_queue_rows(last_insert_id());
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, v_outcome as outcome;

    call rowq.internal_restore_session();
end//
delimiter ;
