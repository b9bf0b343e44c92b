-- Limits: max_leased and rate_limit.
--
-- A dequeue from a limited queue counts the leased messages and the deliveries of the last
-- rate_seconds, and leases no more than the limits allow. It counts first without a lock, so that
-- polling a queue at its limit neither waits nor writes, then under the limit lock (the queue's
-- row in limit_lock), so that two dequeues cannot use the same capacity. There are no counters
-- that could leak capacity: a finished, reaped or rolled-back claim no longer counts as leased.
--
--   dequeue_fast -> admit -> available_capacity, lock_limit
--   dequeue_fast -> record_start
--   maintain_queue -> purge_started
--
-- Writes started. Only reads claim, floor, limit_lock, queue.

create or replace function rowq.internal_admit(
    p_queue_id       integer,
    p_wanted         integer,
    p_max_leased     integer,
    p_rate_limit     integer,
    p_rate_seconds   double precision,
    out o_capacity   integer,
    out o_rate_limit integer
)
language plpgsql
as $$
-- purpose   Return how many messages a dequeue may lease, and hold the queue's limit lock.
-- locks     the limit lock: waits up to 100 ms, holds it until the transaction ends
-- errors    RQ713
declare
    v_is_paused boolean;
begin
    -- An older snapshot does not show what other sessions have leased since.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'RQ713 wrong_transaction_state: '
            'a queue with max_leased or rate_limit requires READ COMMITTED'
            using errcode = 'RQ713';
    end if;

    -- Count without the lock first: polling a queue at its limit must not wait or write.
    o_capacity := rowq.internal_available_capacity(
        p_queue_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds
    );
    if o_capacity = 0 then
        return;
    end if;
    o_capacity := 0;
    if not rowq.internal_lock_limit(p_queue_id) then
        return;
    end if;

    -- Read and count again in new statements: their snapshots are newer than the lock, so they
    -- include the previous holder's claim and changed settings.
    select q.paused_at is not null, q.max_leased, q.rate_limit, q.rate_seconds
    into v_is_paused, p_max_leased, o_rate_limit, p_rate_seconds
    from rowq.queue q
    where q.queue_id = p_queue_id;
    if not v_is_paused then
        o_capacity := rowq.internal_available_capacity(
            p_queue_id, p_wanted, p_max_leased, o_rate_limit, p_rate_seconds
        );
    end if;
end;
$$;

create or replace function rowq.internal_available_capacity(
    p_queue_id     integer,
    p_wanted       integer,
    p_max_leased   integer,
    p_rate_limit   integer,
    p_rate_seconds double precision
)
returns integer
language plpgsql
as $$
-- purpose   Return how many of p_wanted messages the queue's limits allow now.
declare
    -- Computed once: a scan that compares with clock_timestamp() cannot start at the first row that
    -- counts.
    v_since constant timestamp with time zone :=
        clock_timestamp() - make_interval(secs => p_rate_seconds);
    v_from     bigint;
    v_capacity bigint;
begin
    -- Start at the safe floor, so that claims committed late are counted.
    if p_max_leased > 0 then
        v_from := rowq.internal_read_safe_floor(p_queue_id, -1::smallint /* claim */);
    end if;
    v_capacity := least(
        p_wanted,
        case when p_max_leased > 0 then p_max_leased - (
            select coalesce(sum(cardinality(c.message_ids)), 0)
            from rowq.claim c
            where c.queue_id = p_queue_id
              and c.claim_id >= v_from
        ) end,
        case when p_rate_limit > 0 then p_rate_limit - (
            select coalesce(sum(s.messages), 0)
            from rowq.started s
            where s.queue_id = p_queue_id
              and s.started_at > v_since
        ) end
    );
    return greatest(v_capacity, 0);
end;
$$;

create or replace function rowq.internal_lock_limit(p_queue_id integer)
returns boolean
language plpgsql
as $$
-- purpose   Lock the limit lock of a queue; return whether it was free within 100 ms.
-- locks     the limit lock: waits up to 100 ms
declare
    v_is_locked boolean;
    v_until     timestamp with time zone;
begin
    -- Poll with skip locked: a lock_timeout at the very end of a row wait is reported as a cancel
    -- by the user (57014), and a real cancel must not be caught.
    loop
        perform 1
        from rowq.limit_lock g
        where g.queue_id = p_queue_id
        for update skip locked;
        v_is_locked := found;
        exit when v_is_locked;

        v_until := coalesce(v_until, clock_timestamp() + interval '100 milliseconds');
        exit when clock_timestamp() >= v_until;
        perform pg_sleep(0.005);
    end loop;
    return v_is_locked;
end;
$$;

create or replace function rowq.internal_record_start(
    p_queue_id   integer,
    p_claim_id   bigint,
    p_started_at timestamp with time zone,
    p_messages   integer
)
returns void
language plpgsql
as $$
-- purpose   Record the deliveries that a claim started, in a queue with a rate_limit.
begin
    insert into rowq.started (queue_id, messages, started_at, claim_id)
    values (p_queue_id, p_messages, p_started_at, p_claim_id);
end;
$$;

create or replace function rowq.internal_purge_started(
    p_queue_id    integer,
    p_seconds     double precision,
    p_limit       integer,
    p_pending_seq bigint,
    p_pending_xid xid8
)
returns void
language plpgsql
as $$
-- purpose   Delete up to p_limit rows of started that are older than p_seconds.
-- locks     the deleted rows
declare
    v_before constant timestamp with time zone :=
        clock_timestamp() - make_interval(secs => p_seconds);
    v_from   timestamp with time zone;
    v_last   timestamp with time zone;
begin
    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_queue_id, -5::smallint /* started */)
    );
    select max(h.started_at) into v_last
    from (
        select s.started_at
        from rowq.started s
        where s.queue_id = p_queue_id
          and s.started_at >= v_from
          and s.started_at < v_before
        order by s.queue_id, s.started_at, s.claim_id
        limit p_limit
    ) h;

    if v_last is not null then
        delete from rowq.started s
        where s.queue_id = p_queue_id
          and s.started_at between v_from and v_last;
    elsif p_seconds = 0 then
        -- A queue that never had a rate_limit needs no floor.
        perform 1
        from rowq.floor f
        where f.queue_id = p_queue_id
          and f.lane = -5 /* started */
        limit 1;
        if not found then
            return;
        end if;
    end if;
    perform rowq.internal_move_floor(
        p_queue_id, -5::smallint /* started */, false, true, p_pending_seq, p_pending_xid
    );
end;
$$;
