procedure list_workers(
    p_queue_name in varchar2 default null,
    p_rows       out sys_refcursor
)
is
-- routine   list_workers
-- version   1
-- purpose   List workers that reported within the last hour, idle ones included.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_queue t_queue;
begin
    if p_queue_name is not null then
        v_queue := internal_require_queue(p_queue_name);
    end if;

    open p_rows for
        select q.queue_name, w.worker_id, w.worker_name, w.host_name, w.worker_version, w.threads,
               w.started_at, w.last_seen_at,
               extract(day from v_now - w.last_seen_at) * 86400
               + extract(hour from v_now - w.last_seen_at) * 3600
               + extract(minute from v_now - w.last_seen_at) * 60
               + extract(second from v_now - w.last_seen_at) as last_seen_seconds,
               w.completed, w.failed, w.completed_per_second, w.failed_per_second
        from rowq_queue q
        join rowq_worker w on w.queue_id = q.queue_id
        where (v_queue.queue_id is null or q.queue_id = v_queue.queue_id)
          and w.last_seen_at > v_now - interval '1' hour
        order by q.queue_key, w.worker_key;
end list_workers;
