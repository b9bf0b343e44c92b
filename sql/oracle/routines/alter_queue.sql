procedure alter_queue(
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
-- routine   alter_queue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting unchanged.
-- promise   P15
-- locks     the queue row; new deferred rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
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
    v_queue := internal_require_queue(p_queue_name);

    update rowq_queue q
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
        q.result_seconds       = coalesce(p_result_seconds, q.result_seconds),
        q.history_days         = coalesce(p_history_days, q.history_days)
    where q.queue_id = v_queue.queue_id;
    if sql%rowcount = 0 then
        -- The queue was dropped while this call waited for its row.
        internal_refuse_queue(p_queue_name);
    end if;
    if p_group_limit > v_queue.group_limit then
        internal_defer_group_checks(v_queue.queue_id);
    end if;

    open p_rows for
        select p_queue_name as queue_name, 'altered' as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end alter_queue;
