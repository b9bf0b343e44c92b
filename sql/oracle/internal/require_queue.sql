function internal_require_queue(p_queue_name in varchar2)
return t_queue
is
-- routine   internal_require_queue
-- purpose   Return the settings of a queue; raise an error if it does not exist.
-- promise   P15
-- errors    RQ701 RQ711
    v_key   raw(400);
    v_queue t_queue;
    cursor named is
        select q.part_id, q.lease_seconds, q.max_attempts, q.backoff_base_seconds,
               q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length, q.group_limit, q.group_after_dead, q.max_leased,
               q.rate_limit, q.rate_seconds, q.result_seconds, q.history_days, q.paused_at,
               q.listened_until
        from rowq_queue q
        where q.queue_key = v_key;
begin
    if length(p_queue_name) <= 100 then
        v_key := utl_raw.cast_to_raw(p_queue_name);
        open named;
        fetch named into v_queue;
        close named;
    end if;
    if v_queue.part_id is null then
        internal_refuse_queue(p_queue_name);
    end if;
    return v_queue;
end internal_require_queue;
