-- Queues: settings, locks against drop_queue, and deletion.
--
-- Every call reads its queue's settings by name, once, and raises RQ701 if the queue does not
-- exist. A call that adds or moves messages also prevents drop_queue until its transaction ends.
-- drop_queue takes the opposite lock and fails with RQ705 after about a second, so calls never wait
-- long behind it.
--
-- The lock is a shared lock on the queue's row, or the table lock of an insert into message.
-- drop_queue locks the tables one by one, each for at most 47 ms.
--
--   alter_queue, pause_queue, resume_queue, ... -> refuse_queue
--   alter_queue, drop_queue, pause_queue, ... -> require_queue -> refuse_queue
--   drop_queue -> refuse_filled_queue
--   bind_topic, unbind_topic, create_schedule, ... -> lock_queue -> refuse_queue
--   enqueue, enqueue_batch -> require_queue_row -> refuse_queue
--
-- Reads archive, message, queue.

create or replace function rowq.internal_refuse_queue(p_queue_name text)
returns void
language plpgsql
as $$
-- purpose   Raise the error for a missing or unknown queue name.
-- errors    RQ701 RQ711
begin
    if p_queue_name is null then
        raise exception 'RQ711 invalid_argument: queue_name is required'
            using errcode = 'RQ711';
    end if;
    raise exception 'RQ701 queue_not_found: queue "%" does not exist', left(p_queue_name, 100)
        using errcode = 'RQ701';
end;
$$;

create or replace function rowq.internal_require_queue(p_queue_name text)
returns rowq.queue
language plpgsql
as $$
-- purpose   Return the settings of a queue; raise an error if it does not exist.
-- errors    RQ701 RQ711
declare
    v_queue rowq.queue;
begin
    select q.queue_id, q.queue_name, q.lease_seconds, q.max_attempts, q.backoff_base_seconds,
           q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
           q.max_body_length, q.group_limit, q.group_after_dead, q.group_pause_seconds,
           q.has_deferred, q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds,
           q.history_days, q.paused_at, q.created_at
    into v_queue
    from rowq.queue q
    where q.queue_name = p_queue_name;

    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    return v_queue;
end;
$$;

create or replace function rowq.internal_refuse_filled_queue(
    p_queue_id   integer,
    p_queue_name text,
    p_force      boolean
)
returns void
language plpgsql
as $$
-- purpose   Raise an error if a queue has messages or an archive, unless p_force is true.
-- errors    RQ704
begin
    if not coalesce(p_force, false) and (
        exists (select 1 from rowq.message m where m.queue_id = p_queue_id)
        or exists (select 1 from rowq.archive a where a.queue_id = p_queue_id)
    ) then
        raise exception
            'RQ704 queue_not_empty: queue "%" has messages or an archive; use force to drop them',
            p_queue_name
            using errcode = 'RQ704';
    end if;
end;
$$;

create or replace function rowq.internal_lock_queue(p_queue_name text)
returns integer
language plpgsql
as $$
-- purpose   Return the id of a queue and prevent it from being dropped.
-- locks     the queue row, shared; waits for an open drop
-- errors    RQ701 RQ711
-- differs   other engines lock its row in queue_lock or a table
declare
    v_queue_id integer;
begin
    select q.queue_id into v_queue_id
    from rowq.queue q
    where q.queue_name = p_queue_name
    for key share;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    return v_queue_id;
end;
$$;

create or replace function rowq.internal_require_queue_row(p_queue_id integer, p_queue_name text)
returns void
language plpgsql
as $$
-- purpose   Raise an error if a queue was dropped since its settings were read.
-- locks     none; under repeatable read the queue row, shared
-- errors    RQ701
begin
    -- The caller has written to rowq.message, so drop_queue waits for it and the answer stays true.
    if current_setting('transaction_isolation') <> 'read committed' then
        -- An old snapshot shows a dropped queue, but locking its row fails with 40001.
        perform 1
        from rowq.queue q
        where q.queue_id = p_queue_id
        for key share;
    else
        perform 1
        from rowq.queue q
        where q.queue_id = p_queue_id;
    end if;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
end;
$$;
