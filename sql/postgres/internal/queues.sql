-- Queues: settings, locks against drop_queue, and deletion.
--
-- Every call reads its queue's settings by name, once, and raises RQ701 if there is no such queue.
-- A call that adds or moves messages also keeps the queue from being dropped until its transaction
-- ends. drop_queue takes the opposite lock and gives up with RQ705 after about a second, so that
-- nothing waits behind it for long.
--
-- Here that is a shared lock on the queue's row, or the lock that an insert takes on message.
-- drop_queue locks the tables one by one, each for 47 ms at most.
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
-- purpose   Raise the error for a queue name that is missing or unknown.
-- errors    RQ701 RQ711
begin
    if p_queue_name is null then
        raise exception 'RQ711 invalid_argument: queue_name is missing'
            using errcode = 'RQ711';
    end if;
    raise exception 'RQ701 queue_not_found: %', left(p_queue_name, 100)
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
-- purpose   Refuse to drop a queue that has messages or an archive, unless it is to be forced.
-- errors    RQ704
begin
    if not coalesce(p_force, false) and (
        exists (select 1 from rowq.message m where m.queue_id = p_queue_id)
        or exists (select 1 from rowq.archive a where a.queue_id = p_queue_id)
    ) then
        raise exception 'RQ704 queue_not_empty: % has messages or an archive; force drops them too',
            p_queue_name
            using errcode = 'RQ704';
    end if;
end;
$$;

create or replace function rowq.internal_lock_queue(p_queue_name text)
returns integer
language plpgsql
as $$
-- purpose   Return the id of a queue, and keep the queue from being dropped.
-- locks     the queue row, shared; waits for a drop that is under way
-- errors    RQ701 RQ711
-- differs   this engine's own: elsewhere its row in queue_lock is locked
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
-- purpose   Refuse a message for a queue that was dropped since its settings were read.
-- locks     none; under repeatable read the queue row, shared
-- errors    RQ701
begin
    -- The caller must have written to rowq.message: from then on drop_queue waits for it, so that
    -- the answer stays true.
    if current_setting('transaction_isolation') <> 'read committed' then
        -- An old snapshot still shows a queue that was dropped, but locking its row fails with
        -- 40001.
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
