procedure promote(
    p_queue_name in varchar2,
    p_batch_size in number default 1000,
    p_rows       out sys_refcursor
)
is
-- routine   promote
-- version   1
-- purpose   Make delayed messages ready that are due.
-- promise   P11 P45
-- locks     delayed rows, skipping locked ones; new ready rows
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_promoted      pls_integer;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_batch_size(p_batch_size);
    v_queue := internal_require_queue(p_queue_name);
    v_promoted := internal_promote(v_queue.queue_id, p_batch_size);
    if v_promoted > 0 then
        internal_wake_waiters(v_queue.queue_id, v_queue.waiting_until);
    end if;

    open p_rows for
        select v_promoted as promoted
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end promote;
