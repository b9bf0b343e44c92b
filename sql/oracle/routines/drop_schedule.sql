procedure drop_schedule(
    p_queue_name    in varchar2,
    p_schedule_name in varchar2,
    p_rows          out sys_refcursor
)
is
-- routine   drop_schedule
-- version   1
-- purpose   Drop a schedule; messages already enqueued stay.
-- promise   P15
-- locks     the schedule row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_schedule      t_schedule;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    v_queue := internal_require_queue(p_queue_name);
    v_schedule := internal_require_schedule(v_queue.queue_id, p_schedule_name);
    delete from rowq_schedule s
    where s.queue_id = v_schedule.queue_id
      and s.schedule_key = v_schedule.schedule_key;

    open p_rows for
        select p_schedule_name as schedule_name, 'dropped' as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end drop_schedule;
