procedure alter_schedule(
    p_queue_name       in varchar2,
    p_schedule_name    in varchar2,
    p_cron             in varchar2 default null,
    p_interval_seconds in number default null,
    p_time_zone        in varchar2 default null,
    p_body             in clob default null,
    p_body_binary      in blob default null,
    p_message_type     in varchar2 default null,
    p_headers          in clob default null,
    p_priority         in number default null,
    p_max_attempts     in number default null,
    p_group_key        in varchar2 default null,
    p_missed           in varchar2 default null,
    p_overlap          in number default null,
    p_starts_at        in timestamp default null,
    p_ends_at          in timestamp default null,
    p_is_paused        in number default null,
    p_counts_from      in varchar2 default null,
    p_rows             out sys_refcursor
)
is
-- routine   alter_schedule
-- version   1
-- purpose   Change, pause or resume a schedule; null leaves a setting unchanged.
-- promise   P15 P31 P48
-- locks     the schedule row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    v_now           constant timestamp(6) := sys_extract_utc(systimestamp);
    v_queue         t_queue;
    v_schedule      t_schedule;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_queue := internal_require_queue(p_queue_name);
    v_schedule := internal_require_schedule(v_queue.queue_id, p_schedule_name);

    -- A new kind of time, or of body, replaces the other.
    if p_cron is not null or p_interval_seconds is not null then
        v_schedule.cron := p_cron;
        v_schedule.interval_seconds := p_interval_seconds;
    end if;
    if p_body is not null or p_body_binary is not null then
        v_schedule.body := p_body;
        v_schedule.body_binary := p_body_binary;
    end if;
    v_schedule.time_zone := coalesce(p_time_zone, v_schedule.time_zone);
    v_schedule.message_type := coalesce(p_message_type, v_schedule.message_type);
    v_schedule.headers := coalesce(p_headers, v_schedule.headers);
    v_schedule.priority := coalesce(p_priority, v_schedule.priority);
    v_schedule.max_attempts := coalesce(p_max_attempts, v_schedule.max_attempts);
    v_schedule.group_key := coalesce(p_group_key, v_schedule.group_key);
    v_schedule.missed := coalesce(p_missed, v_schedule.missed);
    v_schedule.is_running := case
        when coalesce(p_counts_from, v_schedule.counts_from) = 'end'
             and (v_schedule.is_running = 1 or v_schedule.counts_from = 'start') then 1
        else 0
    end;
    v_schedule.counts_from := coalesce(p_counts_from, v_schedule.counts_from);
    v_schedule.overlap := case
        when v_schedule.counts_from = 'end' then 0
        else coalesce(p_overlap, v_schedule.overlap)
    end;
    v_schedule.starts_at := coalesce(p_starts_at, v_schedule.starts_at);
    v_schedule.ends_at := coalesce(p_ends_at, v_schedule.ends_at);
    v_schedule.is_paused := coalesce(p_is_paused, v_schedule.is_paused);
    -- A schedule that can no longer run can still be paused.
    if p_is_paused is null or p_is_paused = 0 or p_cron is not null
       or p_interval_seconds is not null or p_time_zone is not null or p_body is not null
       or p_body_binary is not null or p_message_type is not null or p_headers is not null
       or p_priority is not null or p_max_attempts is not null or p_group_key is not null
       or p_missed is not null or p_overlap is not null or p_starts_at is not null
       or p_ends_at is not null or p_counts_from is not null then
        internal_check_schedule(v_schedule, v_queue);
    end if;
    v_schedule.next_run_at := null;
    if v_schedule.is_paused = 0 then
        v_schedule.next_run_at := internal_next_tick(v_schedule, v_now);
        if v_schedule.is_running = 1 and v_schedule.starts_at <= v_now then
            v_schedule.next_run_at := v_now + numtodsinterval(1, 'second');
        end if;
    end if;

    update rowq_schedule s
    set s.cron             = v_schedule.cron,
        s.interval_seconds = v_schedule.interval_seconds,
        s.time_zone        = v_schedule.time_zone,
        s.missed           = v_schedule.missed,
        s.overlap          = v_schedule.overlap,
        s.starts_at        = v_schedule.starts_at,
        s.ends_at          = v_schedule.ends_at,
        s.message_type     = v_schedule.message_type,
        s.priority         = v_schedule.priority,
        s.group_key        = v_schedule.group_key,
        s.max_attempts     = v_schedule.max_attempts,
        s.is_paused        = v_schedule.is_paused,
        s.next_run_at      = v_schedule.next_run_at,
        s.last_error       = null,
        s.headers          = v_schedule.headers,
        s.body             = v_schedule.body,
        s.body_binary      = v_schedule.body_binary,
        s.counts_from      = v_schedule.counts_from,
        s.is_running       = v_schedule.is_running
    where s.queue_id = v_schedule.queue_id
      and s.schedule_key = v_schedule.schedule_key;

    open p_rows for
        select p_schedule_name as schedule_name, 'altered' as outcome,
               v_schedule.next_run_at as next_run_at
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end alter_schedule;
