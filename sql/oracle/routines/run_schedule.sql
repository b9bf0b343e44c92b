procedure run_schedule(
    p_queue_name    in varchar2,
    p_schedule_name in varchar2,
    p_rows          out sys_refcursor
)
is
-- routine   run_schedule
-- version   1
-- purpose   Enqueue the message of a schedule now, even if paused; its next run is unchanged.
-- promise   P15
-- locks     the schedule row; as enqueue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_queue         t_queue;
    v_schedule      t_schedule;
    v_message_id    number;
    v_outcome       varchar2(20 char);
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_queue := internal_require_queue(p_queue_name);
    v_schedule := internal_require_schedule(v_queue.queue_id, p_schedule_name);
    internal_enqueue_tick(v_queue, p_queue_name, v_schedule, v_now, v_message_id, v_outcome);
    internal_wake_waiters(v_queue.queue_id, v_queue.waiting_until);
    if v_outcome = 'enqueued' then
        update rowq_schedule s
        set s.last_run_at     = v_now,
            s.last_message_id = v_message_id,
            s.is_running      = case when s.counts_from = 'end' then 1 else 0 end,
            s.next_run_at     = case
                when s.counts_from = 'end' and s.next_run_at is not null
                    then v_now + numtodsinterval(1, 'second')
                else s.next_run_at
            end
        where s.queue_id = v_schedule.queue_id
          and s.schedule_key = v_schedule.schedule_key;
    end if;

    open p_rows for
        select v_message_id as message_id, v_outcome as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end run_schedule;
