create or replace function rowq.report_worker(
    p_queue_name     text,
    p_worker_id      text,
    p_worker_name    text default null,
    p_host_name      text default null,
    p_worker_version text default null,
    p_threads        integer default 1,
    p_completed      bigint default 0,
    p_failed         bigint default 0,
    p_is_ended       boolean default false
)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   report_worker
-- version   1
-- purpose   Report that a worker runs, with its totals; call it about every 10 seconds.
-- promise   P15
-- locks     the queue row, shared; the worker's row; the row of one gone worker, skipping locked
--           ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    c_most           constant double precision := 9007199254740992;
    v_queue_id       integer;
    v_completed      bigint;
    v_failed         bigint;
    v_completed_rate double precision;
    v_failed_rate    double precision;
    v_seconds        double precision;
    v_gone           text;
    v_now            timestamp with time zone;
begin
    if p_worker_id is null or p_worker_id !~ '^[A-Za-z0-9_.:-]{1,64}$' then
        raise exception
            'RQ711 invalid_argument: worker_id must be 1 to 64 letters, digits, -, _, . or :'
            using errcode = 'RQ711';
    end if;
    if char_length(p_worker_name) > 200
       or char_length(p_host_name) > 200
       or char_length(p_worker_version) > 200 then
        raise exception 'RQ711 invalid_argument: %',
            'worker_name, host_name and worker_version must be at most 200 characters'
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range('threads', p_threads, 1, 100000);
    perform rowq.internal_check_range('completed', p_completed, 0, c_most);
    perform rowq.internal_check_range('failed', p_failed, 0, c_most);
    v_queue_id := rowq.internal_lock_queue(p_queue_name);
    v_now := clock_timestamp();

    if p_is_ended then
        delete from rowq.worker w
        where w.queue_id = v_queue_id
          and w.worker_id = p_worker_id;
        return query select p_queue_name, 'ended';
        return;
    end if;

    select w.completed, w.failed, w.completed_per_second, w.failed_per_second,
           extract(epoch from v_now - w.last_seen_at)
    into v_completed, v_failed, v_completed_rate, v_failed_rate, v_seconds
    from rowq.worker w
    where w.queue_id = v_queue_id
      and w.worker_id = p_worker_id;
    if v_seconds > 0 then
        v_completed_rate := greatest(coalesce(p_completed, 0) - v_completed, 0) / v_seconds;
        v_failed_rate := greatest(coalesce(p_failed, 0) - v_failed, 0) / v_seconds;
    end if;
    insert into rowq.worker (
        queue_id, worker_id, worker_name, host_name, worker_version, threads, started_at,
        last_seen_at, completed, failed
    )
    values (
        v_queue_id, p_worker_id, p_worker_name, p_host_name, p_worker_version,
        coalesce(p_threads, 1), v_now, v_now, coalesce(p_completed, 0), coalesce(p_failed, 0)
    )
    on conflict (queue_id, worker_id) do update
    set worker_name          = excluded.worker_name,
        host_name            = excluded.host_name,
        worker_version       = excluded.worker_version,
        threads              = excluded.threads,
        last_seen_at         = excluded.last_seen_at,
        completed            = excluded.completed,
        failed               = excluded.failed,
        completed_per_second = coalesce(v_completed_rate, 0),
        failed_per_second    = coalesce(v_failed_rate, 0);

    -- Delete at most one row per report, so that no report takes long.
    select w.worker_id into v_gone
    from rowq.worker w
    where w.queue_id = v_queue_id
      and w.last_seen_at < v_now - interval '1 hour'
    limit 1
    for update skip locked;
    if found then
        delete from rowq.worker w
        where w.queue_id = v_queue_id
          and w.worker_id = v_gone;
    end if;

    return query select p_queue_name, 'reported';
end;
$$;
