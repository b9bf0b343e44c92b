procedure create_schedule(
    p_queue_name       in varchar2,
    p_schedule_name    in varchar2,
    p_cron             in varchar2 default null,
    p_interval_seconds in number default null,
    p_time_zone        in varchar2 default 'UTC',
    p_body             in clob default null,
    p_body_binary      in blob default null,
    p_message_type     in varchar2 default null,
    p_headers          in clob default null,
    p_priority         in number default 5,
    p_max_attempts     in number default null,
    p_group_key        in varchar2 default null,
    p_missed           in varchar2 default 'once',
    p_overlap          in number default 1,
    p_starts_at        in timestamp default null,
    p_ends_at          in timestamp default null,
    p_counts_from      in varchar2 default 'start',
    p_rows             out sys_refcursor
)
is
-- routine   create_schedule
-- version   1
-- purpose   Create a schedule that enqueues a message by cron or interval.
-- promise   P15 P30 P31 P48
-- locks     the new schedule row; waits for a session that creates the same one
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   does not lock the queue row: a foreign key serializes it with drop_queue
    -- ORA-02291: the queue was dropped while this insert waited.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -2291);
    c_most_tries constant pls_integer := 100;
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_queue         t_queue;
    v_schedule      t_schedule;
    v_existing      t_schedule;
    v_tries         pls_integer := 0;
    v_outcome       varchar2(20 char) := 'created';
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_queue := internal_require_queue(p_queue_name);
    v_schedule.queue_id := v_queue.queue_id;
    v_schedule.schedule_name := p_schedule_name;
    v_schedule.cron := p_cron;
    v_schedule.interval_seconds := p_interval_seconds;
    v_schedule.time_zone := p_time_zone;
    v_schedule.missed := p_missed;
    v_schedule.counts_from := p_counts_from;
    v_schedule.overlap := case when p_counts_from = 'end' then 0 else coalesce(p_overlap, 1) end;
    v_schedule.starts_at := coalesce(p_starts_at, v_now);
    v_schedule.ends_at := p_ends_at;
    v_schedule.message_type := p_message_type;
    v_schedule.priority := p_priority;
    v_schedule.group_key := p_group_key;
    v_schedule.max_attempts := p_max_attempts;
    v_schedule.headers := p_headers;
    v_schedule.body := p_body;
    v_schedule.body_binary := p_body_binary;
    internal_check_schedule(v_schedule, v_queue);
    v_schedule.schedule_key := utl_raw.cast_to_raw(p_schedule_name);
    v_schedule.next_run_at := internal_next_tick(v_schedule, sys_extract_utc(systimestamp));

    loop
        begin
            insert into rowq_schedule (
                queue_id, schedule_key, schedule_name, cron, interval_seconds, time_zone, missed,
                overlap, starts_at, ends_at, message_type, priority, group_key, max_attempts,
                next_run_at, headers, body, body_binary, counts_from
            )
            values (
                v_schedule.queue_id, v_schedule.schedule_key, v_schedule.schedule_name,
                v_schedule.cron, v_schedule.interval_seconds, v_schedule.time_zone,
                v_schedule.missed, v_schedule.overlap, v_schedule.starts_at, v_schedule.ends_at,
                v_schedule.message_type, v_schedule.priority, v_schedule.group_key,
                v_schedule.max_attempts, v_schedule.next_run_at, v_schedule.headers,
                v_schedule.body, v_schedule.body_binary, v_schedule.counts_from
            );
            exit;
        exception
            when e_no_queue then
                internal_refuse_queue(p_queue_name);
            when dup_val_on_index then
                v_existing := internal_read_schedule(v_queue.queue_id, v_schedule.schedule_key);
                if v_existing.queue_id is not null then
                    v_outcome := 'exists';
                    v_schedule.next_run_at := v_existing.next_run_at;
                    exit;
                end if;
                -- The schedule was dropped: retry. Limit the retries: a serializable transaction
                -- never sees the row.
                v_tries := v_tries + 1;
                if v_tries = c_most_tries then
                    raise;
                end if;
        end;
    end loop;

    open p_rows for
        select p_schedule_name as schedule_name, v_outcome as outcome,
               v_schedule.next_run_at as next_run_at
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end create_schedule;
