create or replace function rowq.list_workers(p_queue_name text default null)
returns table (
    queue_name           text,
    worker_id            text,
    worker_name          text,
    host_name            text,
    worker_version       text,
    threads              integer,
    started_at           timestamp with time zone,
    last_seen_at         timestamp with time zone,
    last_seen_seconds    double precision,
    completed            bigint,
    failed               bigint,
    completed_per_second double precision,
    failed_per_second    double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   list_workers
-- version   1
-- purpose   List workers that reported within the last hour, idle ones included.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
#variable_conflict use_column
declare
    v_queue record;
begin
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
    end if;

    -- One statement per queue reads only that queue's rows.
    for v_queue in
        select q.queue_id, q.queue_name
        from rowq.queue q
        where p_queue_name is null
           or q.queue_name = p_queue_name
        order by q.queue_name collate "C"
    loop
        return query
        select v_queue.queue_name, w.worker_id, w.worker_name, w.host_name, w.worker_version,
               w.threads, w.started_at, w.last_seen_at,
               extract(epoch from clock_timestamp() - w.last_seen_at)::double precision,
               w.completed, w.failed, w.completed_per_second, w.failed_per_second
        from rowq.worker w
        where w.queue_id = v_queue.queue_id
          and w.last_seen_at > clock_timestamp() - interval '1 hour'
        order by w.worker_id collate "C";
    end loop;
end;
$$;
