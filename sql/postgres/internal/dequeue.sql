-- Dequeue: lease messages, and wait for them.
--
-- A dequeue locks the first rows of the best lane, skips locked ones, deletes them from ready and
-- inserts one claim: one lease, one heartbeat and one complete per batch. A rollback restores
-- everything. If nothing is ready, it promotes due messages and runs some deferred work, so a queue
-- without maintain still moves. dequeue_wait repeats that in short transactions until a message
-- comes or the time is up.
--
-- Producers notify listening sessions, if there are any.
--
--   resume_queue, push_ready -> notify -> is_listened, channel
--   enqueue, enqueue_batch -> is_listened
--   enqueue, enqueue_batch, listen, ... -> channel
--   dequeue_fast -> pop_ready
--   dequeue_wait -> poll
--   dequeue_wait, wait_for_result -> wait_until
--   retry_later, reap -> with_max_attempts
--
-- Writes ready. Only reads floor, message, meta, queue.

create or replace function rowq.internal_notify(p_queue_id integer)
returns void
language plpgsql
as $$
-- purpose   Notify the sessions that listen to a queue, at commit.
-- locks     as internal_is_listened
declare
    v_channel text;
begin
    if rowq.internal_is_listened(p_queue_id) then
        v_channel := rowq.internal_channel(p_queue_id);
        perform pg_notify(v_channel, q.queue_name)
        from rowq.queue q
        where q.queue_id = p_queue_id;
    end if;
end;
$$;

create or replace function rowq.internal_is_listened(p_queue_id integer)
returns boolean
language sql
as $$
-- purpose   Return whether a session that listens to the queue can be notified.
-- locks     none: the advisory lock is tried and released
    -- A listening session holds this lock shared. One expression tries and releases it, so that an
    -- error in between cannot leave it locked. Two producers that try at the same time each see a
    -- listener, which costs one needless notification. A transaction that has notified cannot be
    -- prepared, so the answer is false if max_prepared_transactions is set. A notify into a full
    -- notification queue fails, so none is sent once it is half full: workers poll.
    select case
        when pg_try_advisory_lock(1919907698, p_queue_id)
            then not pg_advisory_unlock(1919907698, p_queue_id)
        else current_setting('max_prepared_transactions') = '0'
            and pg_notification_queue_usage() < 0.5
    end;
$$;

create or replace function rowq.internal_channel(p_queue_id integer)
returns text
language plpgsql
as $$
-- purpose   Return the channel of a queue's notifications; accounts without a role cannot guess it.
begin
    return (
        select m.value || '_' || p_queue_id
        from rowq.meta m
        where m.name = 'channel'
    );
end;
$$;

create or replace function rowq.internal_pop_ready(
    p_queue_id integer,
    p_limit    integer,
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_errors      text[],
    out o_least_id    bigint,
    out o_greatest_id bigint,
    out o_is_fresh    boolean
)
language plpgsql
as $$
-- purpose   Lease up to p_limit messages, best lane first; return nulls if there are none.
-- locks     ready rows, skipping locked ones
declare
    v_left  integer := p_limit;
    v_lane  smallint := -1;
    v_floor bigint;
    v_seqs  bigint[];
begin
    while v_left > 0 loop
        -- One lookup returns the next lane in use and its newest floor.
        select f.lane, f.start_seq into v_lane, v_floor
        from rowq.floor f
        where f.queue_id = p_queue_id
          and f.lane > v_lane
        order by f.queue_id, f.lane, f.generation
        limit 1;
        exit when not found;

        select array_agg(h.seq),
               o_message_ids || array_agg(h.message_id),
               o_lanes || array_agg(v_lane),
               o_attempts || array_agg((h.attempt + 1)::smallint),
               o_errors || array_agg(h.last_error),
               least(o_least_id, min(h.message_id)),
               greatest(o_greatest_id, max(h.message_id))
        into v_seqs, o_message_ids, o_lanes, o_attempts, o_errors, o_least_id, o_greatest_id
        from (
            select r.seq, r.message_id, r.attempt, r.last_error
            from rowq.ready r
            where r.queue_id = p_queue_id
              and r.lane = v_lane
              and r.seq >= v_floor
            order by r.queue_id, r.lane, r.seq
            limit v_left
            for update skip locked
        ) h;
        continue when v_seqs is null;
        -- Fresh messages are those of one lane on their first attempt, in the order of their ids:
        -- enqueue takes a message's id as its seq, while a promoted, returned or resumed message
        -- gets a later seq. Only after the sequence was set back is that one its id again.
        o_is_fresh := v_seqs = o_message_ids and 1 = all (o_attempts);
        v_left := v_left - cardinality(v_seqs);

        -- The bounds restrict the delete to its key range. A plan made while the table was small
        -- would use "= any" as a filter over the whole lane with its dead rows, and the session
        -- would keep that plan.
        delete from rowq.ready r
        where r.queue_id = p_queue_id
          and r.lane = v_lane
          and r.seq between v_seqs[1] and v_seqs[cardinality(v_seqs)]
          and r.seq = any (v_seqs);

        -- Moving the floor inserts a row, so do it in 1 of 12 dequeues, and always if the floor is
        -- more than 1000 behind.
        if v_seqs[1] > v_floor and (random() < 0.08 or v_seqs[1] - v_floor > 1000) then
            perform rowq.internal_move_floor(
                p_queue_id, v_lane, true, p_cap => v_seqs[cardinality(v_seqs)] + 1
            );
        end if;
    end loop;
end;
$$;

create or replace function rowq.internal_poll(
    p_queue_name    text,
    p_batch_size    integer,
    p_worker_name   text,
    p_lease_seconds integer,
    p_until         timestamp with time zone,
    p_pause         double precision,
    out o_messages  jsonb,
    out o_pause     double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- purpose   Poll once for dequeue_wait: return a JSON array of messages, or the pause before the next poll.
-- locks     as dequeue_fast
-- errors    RQ701 RQ711
-- differs   only here dequeue_wait runs under the caller's search_path
declare
    -- jsonb is limited to 256 MB, and text may grow when the client encoding differs: stop at 64
    -- MB.
    c_most_octets constant bigint := 67108864;
    v_claim_id    bigint;
    v_rest        bigint[];
begin
    select jsonb_agg(
               jsonb_build_object(
                   'claim_id', t.claim_id, 'message_id', t.message_id, 'attempt', t.attempt,
                   'message_type', t.message_type, 'headers', t.headers, 'body', t.body,
                   'body_binary', translate(encode(t.body_binary, 'base64'), E'\n', ''),
                   'enqueued_at', t.enqueued_at, 'lease_until', t.lease_until,
                   'last_error', t.last_error
               )
           ) filter (where t.octets <= c_most_octets or t.place = 1),
           min(t.claim_id),
           array_agg(t.message_id) filter (where t.octets > c_most_octets and t.place > 1)
    into o_messages, v_claim_id, v_rest
    from (
        select d.claim_id, d.message_id, d.attempt, d.message_type, d.headers, d.body,
               d.body_binary, d.enqueued_at, d.lease_until, d.last_error,
               row_number() over w as place,
               sum(
                   octet_length(coalesce(d.body, '')) + octet_length(coalesce(d.body_binary, ''))
                   + octet_length(coalesce(d.headers::text, ''))
                   + octet_length(coalesce(d.message_type, ''))
                   + octet_length(coalesce(d.last_error, ''))
               ) over w as octets
        from rowq.dequeue_fast(p_queue_name, p_batch_size, p_worker_name, p_lease_seconds) d
        window w as (rows unbounded preceding)
    ) t;
    if v_rest is not null then
        perform rowq.release(p_queue_name, v_claim_id, v_rest);
    end if;

    if o_messages is null and clock_timestamp() < p_until then
        o_pause := least(p_pause * 2, 0.25, extract(epoch from p_until - clock_timestamp()));
    end if;
end;
$$;

create or replace function rowq.internal_wait_until(p_wait_seconds double precision)
returns timestamp with time zone
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- purpose   Return the time at which a wait ends.
-- errors    RQ711
-- differs   only here dequeue_wait runs under the caller's search_path
begin
    if p_wait_seconds is null or p_wait_seconds not between 0 and 3600 then
        raise exception 'RQ711 invalid_argument: wait_seconds must be between 0 and 3600, got %',
            p_wait_seconds
            using errcode = 'RQ711';
    end if;
    return clock_timestamp() + make_interval(secs => p_wait_seconds);
end;
$$;

create or replace function rowq.internal_with_max_attempts(
    p_queue_id     integer,
    p_message_ids  bigint[],
    p_lanes        smallint[],
    p_attempts     smallint[],
    p_max_attempts integer
)
returns table (message_id bigint, lane smallint, attempt smallint, allowed integer)
language plpgsql
as $$
-- purpose   Return the messages of a claim with the number of attempts each may have.
#variable_conflict use_column
begin
    -- Without a limit (0) the attempt stops below the highest smallint: the next dequeue adds one.
    return query
    select u.message_id, u.lane, least(u.attempt, 32766::smallint),
           coalesce(nullif(coalesce(m.max_attempts::integer, p_max_attempts), 0), 32767)
    from unnest(p_message_ids, p_lanes, p_attempts)
        with ordinality u (message_id, lane, attempt, place)
    cross join lateral (
        -- offset 0 keeps this plan, a lookup per message, regardless of row estimates.
        select x.max_attempts
        from rowq.message x
        where x.queue_id = p_queue_id
          and x.message_id = u.message_id
        offset 0
    ) m
    order by u.place;
end;
$$;
