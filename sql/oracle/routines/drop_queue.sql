procedure drop_queue(
    p_queue_name in varchar2,
    p_force      in number default 0,
    p_rows       out sys_refcursor
)
is
-- routine   drop_queue
-- version   1
-- purpose   Drop an empty queue or, with force, a queue with its messages and its archive.
-- promise   P02 P15
-- locks     the tables against writers, waits up to 1 s; all rows of the queue
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ704 RQ705 RQ711
-- differs   nothing
    v_queue         t_queue;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    if p_force not in (0, 1) then
        internal_refuse('force must be 0 or 1');
    end if;
    v_queue := internal_require_queue(p_queue_name);
    internal_remove_queue(v_queue.queue_id, p_queue_name, coalesce(p_force, 0) = 1);

    open p_rows for
        select p_queue_name as queue_name, 'dropped' as outcome
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end drop_queue;
