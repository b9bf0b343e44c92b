procedure queue_stats(
    p_queue_name       in varchar2 default null,
    p_max_count        in number default 100000,
    p_after_queue_name in varchar2 default null,
    p_max_queues       in number default null,
    p_rows             out sys_refcursor
)
is
-- routine   queue_stats
-- version   1
-- purpose   Return counts, age and settings of one queue or all.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_after     raw(400) := nvl(
        utl_raw.cast_to_raw(substr(p_after_queue_name, 1, 100)), hextoraw('00')
    );
    v_queue     t_queue;
    v_queue_ids t_numbers;
    v_counts    rowq_counts := rowq_counts();
begin
    internal_check_whole('max_count', p_max_count, 1, 100000000, p_is_required => true);
    internal_check_whole('max_queues', p_max_queues, 1, 10000);
    if p_queue_name is null then
        select q.queue_id bulk collect into v_queue_ids
        from rowq_queue q
        where q.queue_key > v_after
        order by q.queue_key
        fetch first nvl(p_max_queues, 1000000000) rows only;
    else
        v_queue := internal_require_queue(p_queue_name);
        v_queue_ids(1) := v_queue.queue_id;
    end if;
    v_counts.extend(v_queue_ids.count);
    for i in 1 .. v_queue_ids.count loop
        v_counts(i) := internal_count_messages(v_queue_ids(i), p_max_count);
    end loop;

    open p_rows for
        select q.queue_name, nvl2(q.paused_at, 1, 0) as is_paused, n.ready_count as ready,
               n.delayed_count as delayed, n.leased_count as leased, n.dead_count as dead,
               n.blocked_count as blocked, n.oldest_seconds as oldest_ready_seconds,
               q.lease_seconds, q.max_attempts, q.backoff_base_seconds, q.backoff_factor,
               q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length, q.group_limit, q.group_after_dead, q.group_pause_seconds,
               q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds,
               q.history_days
        from table(v_counts) n
        join rowq_queue q on q.queue_id = n.queue_id
        order by q.queue_key;
end queue_stats;
