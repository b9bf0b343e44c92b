procedure health(p_rows out sys_refcursor)
is
-- routine   health
-- version   1
-- purpose   Check for problems: blocked cleanup, overdue work, expired leases, dead messages, sequences.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   the horizon and maintain_fault checks are this engine's
    type t_named is record (
        queue_id       rowq_queue.queue_id%type,
        queue_name     rowq_queue.queue_name%type,
        paused_at      rowq_queue.paused_at%type,
        result_seconds rowq_queue.result_seconds%type,
        history_days   rowq_queue.history_days%type
    );
    type t_named_list is table of t_named index by pls_integer;
    v_queues t_named_list;
    v_checks rowq_checks := rowq_checks();
begin
    internal_health_server(v_checks);
    select q.queue_id, q.queue_name, q.paused_at, q.result_seconds, q.history_days
    bulk collect into v_queues
    from rowq_queue q
    order by q.queue_key;
    for i in 1 .. v_queues.count loop
        internal_health_queue(
            v_queues(i).queue_id, v_queues(i).queue_name, v_queues(i).paused_at is not null,
            v_queues(i).result_seconds, v_queues(i).history_days, v_checks
        );
    end loop;

    open p_rows for
        select n.check_name, n.queue_name,
               case
                   when n.measured >= n.critical then 'critical'
                   when n.measured >= n.warning then 'warning'
                   else 'ok'
               end as status,
               n.measured as value, n.detail
        from table(v_checks) n
        order by nlssort(n.check_name, 'nls_sort=binary'),
                 nlssort(n.queue_name, 'nls_sort=binary') nulls first,
                 nlssort(n.detail, 'nls_sort=binary');
end health;
