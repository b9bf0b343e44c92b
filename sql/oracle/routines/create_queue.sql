procedure create_queue(
    p_queue_name           in varchar2,
    p_lease_seconds        in number default null,
    p_max_attempts         in number default null,
    p_backoff_base_seconds in number default null,
    p_backoff_factor       in number default null,
    p_backoff_cap_seconds  in number default null,
    p_backoff_jitter       in number default null,
    p_archive_days         in number default null,
    p_max_body_length      in number default null,
    p_group_limit          in number default null,
    p_group_after_dead     in varchar2 default null,
    p_group_pause_seconds  in number default null,
    p_max_leased           in number default null,
    p_rate_limit           in number default null,
    p_rate_seconds         in number default null,
    p_result_seconds       in number default null,
    p_history_days         in number default null,
    p_rows                 out sys_refcursor
)
is
-- routine   create_queue
-- version   1
-- purpose   Create a queue; leave an existing queue unchanged.
-- promise   P15
-- locks     the new rows of queue, lane, lock_bucket and limit_lock; waits for a session that
--           creates the same queue
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
    v_key           raw(400);
    v_queue_id      rowq_queue.queue_id%type;
    v_outcome       varchar2(20 char) := 'exists';
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_settings(
        p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
        p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
        p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
        p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds,
        p_history_days
    );
    v_key := utl_raw.cast_to_raw(p_queue_name);

    -- Check first: an insert that conflicts uses up an id.
    select max(q.queue_id) into v_queue_id
    from rowq_queue q
    where q.queue_key = v_key;
    if v_queue_id is null then
        v_queue_id := rowq_queue_seq.nextval;
        begin
            insert into rowq_queue (
                queue_id, queue_name, queue_key, lease_seconds, max_attempts,
                backoff_base_seconds, backoff_factor, backoff_cap_seconds, backoff_jitter,
                archive_days, max_body_length, group_limit, group_after_dead,
                group_pause_seconds, max_leased, rate_limit, rate_seconds,
                result_seconds, history_days, created_at
            )
            values (
                v_queue_id, p_queue_name, v_key, coalesce(p_lease_seconds, 30),
                coalesce(p_max_attempts, 10), coalesce(p_backoff_base_seconds, 5),
                coalesce(p_backoff_factor, 2), coalesce(p_backoff_cap_seconds, 3600),
                coalesce(p_backoff_jitter, 0.2), coalesce(p_archive_days, 0),
                coalesce(p_max_body_length, 1048576), coalesce(p_group_limit, 1),
                coalesce(p_group_after_dead, 'continue'), coalesce(p_group_pause_seconds, 0),
                coalesce(p_max_leased, 0), coalesce(p_rate_limit, 0), coalesce(p_rate_seconds, 1),
                coalesce(p_result_seconds, 0), coalesce(p_history_days, 0),
                sys_extract_utc(systimestamp)
            );
            v_outcome := 'created';
        exception
            when dup_val_on_index then
                -- Another session has created the queue. If there is none of that name, queue_id
                -- was the duplicate: an error.
                select max(q.queue_id) into v_queue_id
                from rowq_queue q
                where q.queue_key = v_key;
                if v_queue_id is null then
                    raise;
                end if;
        end;
        if v_outcome = 'created' then
            internal_add_queue_rows(v_queue_id);
        end if;
    end if;

    open p_rows for
        select p_queue_name as queue_name, v_outcome as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end create_queue;
