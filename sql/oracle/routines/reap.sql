procedure reap(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   reap
-- version   1
-- purpose   Return unfinished messages of claims whose lease has expired.
-- promise   P03 P09 P34 P37 P45 P47
-- locks     expired claim rows and message rows, skipping locked ones; ready, dead and dedup
--           rows; for cancelled messages as complete; new history rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_reaped        pls_integer;
    v_died          pls_integer;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    internal_reap(v_queue, p_batch_size, v_reaped, v_died);
    if v_reaped > 0 then
        internal_wake_waiters(v_queue.queue_id, v_queue.waiting_until);
    end if;

    open p_rows for
        select v_reaped as reaped, v_died as died
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end reap;
