create or replace function rowq.internal_health_limits()
returns table (
    check_name text,
    queue_name text,
    value      double precision,
    warning    double precision,
    critical   double precision,
    detail     text
)
language plpgsql
as $$
-- routine   internal_health_limits
-- purpose   Return for each queue with limits how long a transaction has kept others from dequeuing, and whose it is.
-- differs   this engine's own
#variable_conflict use_column
declare
    v_queue  record;
    v_holder xid;
begin
    for v_queue in
        select q.part_id, q.queue_name
        from rowq.queue q
        where q.max_leased > 0
           or q.rate_limit > 0
    loop
        -- A row lock stands in no view, but its row names the transaction.
        select g.xmax into v_holder
        from rowq.gate g
        where g.part_id = v_queue.part_id;
        return query
        select 'held_limits', v_queue.queue_name,
               coalesce(max(extract(epoch from clock_timestamp() - a.xact_start)), 0)
                   ::double precision,
               30::double precision, 300::double precision,
               coalesce(
                   max(format(
                       'seconds of the transaction of session %s of %s (%s), which has dequeued; '
                       'nobody else gets a message of this queue until it ends',
                       a.pid, a.usename, a.state
                   )),
                   'no transaction keeps others from dequeuing'
               )
        from pg_catalog.pg_locks l
        join pg_catalog.pg_stat_activity a on a.pid = l.pid
        where l.locktype = 'transactionid'
          and l.transactionid = v_holder
          and l.mode = 'ExclusiveLock'
          and l.granted
          and a.pid <> pg_backend_pid();
    end loop;
end;
$$;
