-- Cancel: cancelling by a caller, expiry, and finding a message.
--
-- A waiting message is deleted where it waits and ends as cancelled or expired. If a message is
-- leased, the cancel is recorded in its claim: the heartbeat returns it, and the call that returns
-- the message ends it. A message that expires has rows in expiry. Each call that makes it ready or
-- moves it adds a row with its position, so maintain finds due messages by key, and deletes a row
-- whose message it does not find. A locked message is skipped and retried.
--
-- alter_message locks the row where a message waits, and rewrites it even if only the message row
-- changes: a dequeue with an older snapshot then fails with 40001, and delivers no old body.
--
-- cancel scans the claims once from their safe floor, for all messages together.
--
--   retry_later, fail_now, release, ... -> end_cancelled
--   cancel -> record_cancels
--   cancel, cancel_many -> cancel_unleased -> pop_waiting
--   alter_message -> lock_waiting, alter_waiting -> record_expiry
--   reset, push_delayed -> record_expiry
--   get_message, get_result, get_history -> locate_messages
--   explain_message -> locate_messages, explain_blocked, explain_ready
--   explain_blocked -> explain_group
--   maintain_queue -> expire -> pop_expired
--
-- Writes blocked, claim, dead, delayed, expiry, group_waiting, ready. Only reads deferred,
-- finished, floor, message, queue, started, worker.

create or replace function rowq.internal_end_cancelled(
    p_queue_id        integer,
    p_message_ids     bigint[],
    p_lanes           smallint[],
    p_attempts        smallint[],
    p_errors          text[],
    p_cancel_ids      bigint[],
    p_claim_id        bigint,
    p_worker_name     text,
    p_leased_at       timestamp with time zone,
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_errors      text[],
    out o_cancel_ids  bigint[],
    out o_worker_name text,
    out o_leased_at   timestamp with time zone
)
language plpgsql
as $$
-- purpose   End the messages of a claim that were cancelled; return the others, and which ended.
-- locks     new history rows; as internal_finish
declare
    v_archive_days integer;
    v_history_days integer;
    v_ended        record;
begin
    o_worker_name := p_worker_name;
    o_leased_at := p_leased_at;
    select q.archive_days, q.history_days into v_archive_days, v_history_days
    from rowq.queue q
    where q.queue_id = p_queue_id;

    select array_agg(u.message_id order by u.position) ids,
           array_agg(u.lane order by u.position) lanes,
           array_agg(u.attempt order by u.position) attempts
    into v_ended
    from unnest(p_message_ids, p_lanes, p_attempts)
        with ordinality u (message_id, lane, attempt, position)
    where u.message_id = any (p_cancel_ids);
    if v_history_days > 0 then
        perform rowq.internal_push_history(
            p_queue_id, p_claim_id, p_worker_name, p_leased_at, v_ended.ids, v_ended.attempts,
            'cancelled'
        );
    end if;
    perform rowq.internal_finish(
        p_queue_id, v_archive_days, v_ended.ids, v_ended.lanes, v_ended.attempts, 'cancelled'
    );
    o_cancel_ids := v_ended.ids;

    select coalesce(array_agg(u.message_id order by u.position), '{}'),
           array_agg(u.lane order by u.position),
           array_agg(u.attempt order by u.position),
           array_agg(u.last_error order by u.position)
    into o_message_ids, o_lanes, o_attempts, o_errors
    from unnest(p_message_ids, p_lanes, p_attempts, p_errors)
        with ordinality u (message_id, lane, attempt, last_error, position)
    where u.message_id <> all (p_cancel_ids);
end;
$$;

create or replace function rowq.internal_record_cancels(p_queue_id integer, p_message_ids bigint[])
returns bigint[]
language plpgsql
as $$
-- purpose   Record a cancel in the claims that hold these messages; return the messages that were recorded.
-- locks     claim rows, skipping locked ones
declare
    -- Begin at the safe floor: a claim that committed late may hold one of them.
    v_from     constant bigint := rowq.internal_read_safe_floor(
        p_queue_id, -1::smallint /* claim */
    );
    v_claim_id bigint;
    v_ids      bigint[];
    v_recorded bigint[] := '{}'::bigint[];
begin
    for v_claim_id in
        select c.claim_id
        from rowq.claim c
        where c.queue_id = p_queue_id
          and c.claim_id >= v_from
          and exists (
              select 1
              from unnest(c.message_ids) u (message_id)
              where u.message_id = any (p_message_ids)
          )
        order by c.queue_id, c.claim_id
        for update skip locked
    loop
        update rowq.claim c
        set cancel_ids = array(
                select u.message_id
                from unnest(c.message_ids) u (message_id)
                where u.message_id = any (p_message_ids)
                   or u.message_id = any (c.cancel_ids)
            )
        where c.queue_id = p_queue_id
          and c.claim_id = v_claim_id
        returning c.cancel_ids into v_ids;
        v_recorded := v_recorded || v_ids;
    end loop;
    return v_recorded;
end;
$$;

create or replace function rowq.internal_cancel_unleased(
    p_queue_id     integer,
    p_archive_days integer,
    p_message_ids  bigint[]
)
returns bigint[]
language plpgsql
as $$
-- purpose   Cancel the messages that no worker holds, and return them.
-- locks     as internal_pop_waiting, then as internal_finish
declare
    v_found record;
begin
    v_found := rowq.internal_pop_waiting(p_queue_id, p_message_ids);
    if v_found.o_message_ids <> '{}' then
        perform rowq.internal_finish(
            p_queue_id, p_archive_days, v_found.o_message_ids, v_found.o_lanes, v_found.o_attempts,
            'cancelled', v_found.o_without_slot
        );
    end if;
    return v_found.o_message_ids;
end;
$$;

create or replace function rowq.internal_pop_waiting(
    p_queue_id         integer,
    p_message_ids      bigint[],
    out o_message_ids  bigint[],
    out o_lanes        smallint[],
    out o_attempts     smallint[],
    out o_without_slot bigint[]
)
language plpgsql
as $$
-- purpose   Delete messages where they wait, and return them. Leased messages stay.
-- locks     delayed, dead, blocked, group_waiting and ready rows, skipping locked ones
-- o_without_slot: those without a slot of a group.
declare
    v_rest  bigint[];
    v_found record;
begin
    with locked as (
        select d.message_id
        from rowq.delayed d
        where d.queue_id = p_queue_id
          and d.message_id = any (p_message_ids)
        for update skip locked
    ),
    gone as (
        delete from rowq.delayed d
        where d.queue_id = p_queue_id
          and d.message_id = any (array(select l.message_id from locked l))
        returning d.message_id, d.lane, d.attempt, d.group_key is not null as is_without_slot
    )
    select coalesce(array_agg(g.message_id), '{}'), coalesce(array_agg(g.lane), '{}'),
           coalesce(array_agg(g.attempt), '{}'),
           array_agg(g.message_id) filter (where g.is_without_slot)
    into o_message_ids, o_lanes, o_attempts, o_without_slot
    from gone g;

    with locked as (
        select d.message_id
        from rowq.dead d
        where d.queue_id = p_queue_id
          and d.message_id = any (p_message_ids)
        for update skip locked
    ),
    gone as (
        delete from rowq.dead d
        where d.queue_id = p_queue_id
          and d.message_id = any (array(select l.message_id from locked l))
        returning d.message_id, d.lane, d.attempt, d.holds_slot is null as is_without_slot
    )
    select o_message_ids || array_agg(g.message_id), o_lanes || array_agg(g.lane),
           o_attempts || array_agg(g.attempt),
           o_without_slot || array_agg(g.message_id) filter (where g.is_without_slot)
    into o_message_ids, o_lanes, o_attempts, o_without_slot
    from gone g;

    -- A message that was never returned is in the tail lane of its priority, and its seq is its
    -- message_id.
    for v_found in
        select r.lane, r.seq, r.message_id, r.attempt
        from rowq.ready r
        where r.queue_id = p_queue_id
          and r.lane = any ('{1,3,5,7,9,11,13,15,17,19}'::smallint[])
          and r.seq = any (p_message_ids)
          and r.message_id = r.seq
        for update skip locked
    loop
        delete from rowq.ready r
        where r.queue_id = p_queue_id
          and r.lane = v_found.lane
          and r.seq = v_found.seq;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || v_found.attempt;
    end loop;

    for v_found in
        select b.message_id, b.lane
        from rowq.blocked b
        where b.queue_id = p_queue_id
          and b.message_id = any (p_message_ids)
        for update skip locked
    loop
        delete from rowq.blocked b
        where b.queue_id = p_queue_id
          and b.message_id = v_found.message_id;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || 0::smallint;
        o_without_slot := o_without_slot || v_found.message_id;
    end loop;

    select array_agg(m.message_id) into v_rest
    from rowq.message m
    where m.queue_id = p_queue_id
      and m.message_id = any (p_message_ids)
      and m.message_id <> all (o_message_ids);
    if v_rest is null then
        return;
    end if;

    -- A message moves from its group to ready, so check its group first.
    for v_found in
        select x.group_key, x.message_id, x.lane
        from rowq.message m
        cross join lateral (
            select w.group_key, w.message_id, w.lane
            from rowq.group_waiting w
            where w.queue_id = p_queue_id
              and w.group_key = m.group_key
              and w.message_id = m.message_id
            for update skip locked
        ) x
        where m.queue_id = p_queue_id
          and m.message_id = any (v_rest)
          and m.group_key is not null
    loop
        delete from rowq.group_waiting x
        where x.queue_id = p_queue_id
          and x.group_key = v_found.group_key
          and x.message_id = v_found.message_id;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || 0::smallint;
        o_without_slot := o_without_slot || v_found.message_id;
        v_rest := array_remove(v_rest, v_found.message_id);
    end loop;
    if v_rest = '{}' then
        return;
    end if;

    for v_found in
        select r.lane, r.seq, r.message_id, r.attempt
        from rowq.ready r
        where r.queue_id = p_queue_id
          and r.message_id = any (v_rest)
        for update skip locked
    loop
        delete from rowq.ready r
        where r.queue_id = p_queue_id
          and r.lane = v_found.lane
          and r.seq = v_found.seq;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || v_found.attempt;
    end loop;
end;
$$;

create or replace function rowq.internal_lock_waiting(
    p_queue_id      integer,
    p_message_id    bigint,
    out o_place     text,
    out o_group_key text,
    out o_lane      smallint,
    out o_seq       bigint
)
language plpgsql
as $$
-- purpose   Lock a message where it waits; o_place is null if it is leased, locked or unknown.
-- locks     a delayed, dead, blocked, group_waiting or ready row, skipped if locked
begin
    select m.group_key into o_group_key
    from rowq.message m
    where m.queue_id = p_queue_id
      and m.message_id = p_message_id;
    if not found then
        return;
    end if;

    select 'delayed', d.lane into o_place, o_lane
    from rowq.delayed d
    where d.queue_id = p_queue_id
      and d.message_id = p_message_id
    for update skip locked;
    if found then
        return;
    end if;

    select 'dead', d.lane into o_place, o_lane
    from rowq.dead d
    where d.queue_id = p_queue_id
      and d.message_id = p_message_id
    for update skip locked;
    if found then
        return;
    end if;

    select 'blocked', b.lane into o_place, o_lane
    from rowq.blocked b
    where b.queue_id = p_queue_id
      and b.message_id = p_message_id
    for update skip locked;
    if found then
        return;
    end if;

    -- A message moves from its group to ready, so check its group first.
    if o_group_key is not null then
        select 'group_waiting', x.lane into o_place, o_lane
        from rowq.group_waiting x
        where x.queue_id = p_queue_id
          and x.group_key = o_group_key
          and x.message_id = p_message_id
        for update skip locked;
        if found then
            return;
        end if;
    end if;

    -- A message that was never returned is in the tail lane of its priority, and its seq is its
    -- message_id. Any other message is searched for in all of ready.
    select 'ready', r.lane, r.seq into o_place, o_lane, o_seq
    from rowq.ready r
    where r.queue_id = p_queue_id
      and r.lane = any ('{1,3,5,7,9,11,13,15,17,19}'::smallint[])
      and r.seq = p_message_id
      and r.message_id = r.seq
    for update skip locked;
    if found then
        return;
    end if;

    select 'ready', r.lane, r.seq into o_place, o_lane, o_seq
    from rowq.ready r
    where r.queue_id = p_queue_id
      and r.message_id = p_message_id
    for update skip locked;
end;
$$;

create or replace function rowq.internal_alter_waiting(
    p_queue_id   integer,
    p_message_id bigint,
    p_place      text,
    p_group_key  text,
    p_lane       smallint,
    p_seq        bigint,
    p_priority   integer,
    p_due_at     timestamp with time zone,
    p_now        timestamp with time zone,
    p_expires    boolean
)
returns timestamp with time zone
language plpgsql
as $$
-- purpose   Give a locked message a priority and a time, where not null; return its time, or null.
-- locks     rows that the caller has locked; new rows; as internal_release_group_slots
declare
    v_lane   constant smallint := coalesce(p_priority * 2 + 1, p_lane);
    v_moved  record;
    v_error  text;
    v_due_at timestamp with time zone;
begin
    if p_expires then
        perform rowq.internal_open_lanes(p_queue_id, '{-6}'::smallint[] /* expiry */);
    end if;

    case p_place
        when 'delayed' then
            update rowq.delayed d
            set lane   = v_lane,
                due_at = greatest(coalesce(p_due_at, d.due_at), p_now)
            where d.queue_id = p_queue_id
              and d.message_id = p_message_id
            returning d.due_at into v_due_at;
        when 'dead' then
            update rowq.dead d
            set lane = v_lane
            where d.queue_id = p_queue_id
              and d.message_id = p_message_id;
        when 'blocked' then
            update rowq.blocked b
            set lane   = v_lane,
                due_at = case
                    when p_due_at is null then b.due_at
                    when p_due_at > p_now then p_due_at
                end
            where b.queue_id = p_queue_id
              and b.message_id = p_message_id
            returning b.due_at into v_due_at;
        when 'group_waiting' then
            if p_due_at > p_now then
                delete from rowq.group_waiting x
                where x.queue_id = p_queue_id
                  and x.group_key = p_group_key
                  and x.message_id = p_message_id
                returning x.last_error into v_error;
                insert into rowq.delayed (
                    queue_id, lane, message_id, due_at, last_error, group_key
                )
                values (p_queue_id, v_lane, p_message_id, p_due_at, v_error, p_group_key);
                v_due_at := p_due_at;
            else
                update rowq.group_waiting x
                set lane = v_lane
                where x.queue_id = p_queue_id
                  and x.group_key = p_group_key
                  and x.message_id = p_message_id;
            end if;
        else
            if p_due_at > p_now or v_lane / 2 <> p_lane / 2 then
                delete from rowq.ready r
                where r.queue_id = p_queue_id
                  and r.lane = p_lane
                  and r.seq = p_seq
                returning r.attempt, r.last_error into v_moved;
            else
                update rowq.ready r
                set attempt = r.attempt
                where r.queue_id = p_queue_id
                  and r.lane = p_lane
                  and r.seq = p_seq;
                if p_expires then
                    insert into rowq.expiry (queue_id, lane, expires_at, message_id, seq)
                    select p_queue_id, p_lane, least(m.expires_at, p_now + interval '1 day'),
                           p_message_id, p_seq
                    from rowq.message m
                    where m.queue_id = p_queue_id
                      and m.message_id = p_message_id;
                end if;
                return null;
            end if;
            if p_due_at > p_now then
                -- A message that was leased before keeps its slot, as a retried one does. Any other
                -- leaves its group, and joins it again when it is due.
                insert into rowq.delayed (
                    queue_id, lane, attempt, message_id, due_at, last_error, group_key
                )
                values (
                    p_queue_id, v_lane / 2 * 2 + 1, v_moved.attempt, p_message_id, p_due_at,
                    v_moved.last_error, case when v_moved.attempt = 0 then p_group_key end
                );
                if p_group_key is not null and v_moved.attempt = 0 then
                    perform rowq.internal_release_group_slots(p_queue_id, array[p_group_key]);
                end if;
                v_due_at := p_due_at;
            else
                perform rowq.internal_push_ready(
                    p_queue_id, array[v_lane], array[p_message_id], array[v_moved.attempt],
                    array[v_moved.last_error]
                );
                return null;
            end if;
    end case;

    if p_expires then
        perform rowq.internal_record_expiry(p_queue_id, array[p_message_id]);
    end if;
    return v_due_at;
end;
$$;

create or replace function rowq.internal_record_expiry(p_queue_id integer, p_message_ids bigint[])
returns void
language plpgsql
as $$
-- purpose   Add a row of expiry for each of these messages that expires.
-- locks     new expiry rows
begin
    -- Only a queue that has had messages that expire has this lane: without it, read no message.
    -- internal_newest_number requires that no row has a past time.
    insert into rowq.expiry (queue_id, expires_at, message_id)
    select p_queue_id, greatest(m.expires_at, clock_timestamp()), u.message_id
    from unnest(p_message_ids) u (message_id)
    cross join lateral (
        select case
                   when x.expires_at is not null
                       then least(x.expires_at, clock_timestamp() + interval '1 day')
               end as expires_at
        from rowq.message x
        where x.queue_id = p_queue_id
          and x.message_id = u.message_id
        offset 0
    ) m
    where m.expires_at is not null
      and exists (
          select
          from rowq.floor f
          where f.queue_id = p_queue_id
            and f.lane = -6 /* expiry */
      );
end;
$$;

create or replace function rowq.internal_locate_messages(
    p_queue_id      integer,
    p_message_id    bigint,
    out state       text,
    out lane        smallint,
    out attempt     smallint,
    out due_at      timestamp with time zone,
    out claim_id    bigint,
    out worker_name text,
    out lease_until timestamp with time zone,
    out finished_at timestamp with time zone,
    out last_error  text,
    out waits_for   bigint,
    out progress    text,
    out leased_at   timestamp with time zone
)
language plpgsql
as $$
-- purpose   Find a message that still has a body; state is null if there is none.
#variable_conflict use_column
declare
    v_group_key text;
    v_from      bigint;
begin
    select m.group_key into v_group_key
    from rowq.message m
    where m.queue_id = p_queue_id
      and m.message_id = p_message_id;
    if not found then
        return;
    end if;

    select 'delayed', d.lane, d.attempt, d.due_at, d.last_error
    into state, lane, attempt, due_at, last_error
    from rowq.delayed d
    where d.queue_id = p_queue_id
      and d.message_id = p_message_id;
    if found then
        return;
    end if;

    select 'dead', d.lane, d.attempt, d.died_at, d.last_error
    into state, lane, attempt, finished_at, last_error
    from rowq.dead d
    where d.queue_id = p_queue_id
      and d.message_id = p_message_id;
    if found then
        return;
    end if;

    select 'blocked', b.lane, 0, b.due_at, b.predecessor_id
    into state, lane, attempt, due_at, waits_for
    from rowq.blocked b
    where b.queue_id = p_queue_id
      and b.message_id = p_message_id;
    if found then
        return;
    end if;

    if v_group_key is not null then
        select 'blocked', x.lane, 0, x.last_error, (
                   select max(y.message_id)
                   from rowq.group_waiting y
                   where y.queue_id = p_queue_id
                     and y.group_key = v_group_key
                     and y.message_id < p_message_id
               )
        into state, lane, attempt, last_error, waits_for
        from rowq.group_waiting x
        where x.queue_id = p_queue_id
          and x.group_key = v_group_key
          and x.message_id = p_message_id;
        if found then
            return;
        end if;
    end if;

    v_from := rowq.internal_read_safe_floor(p_queue_id, -1::smallint /* claim */);
    select 'leased', c.lanes[p.position], c.attempts[p.position], c.claim_id, c.worker_name,
           c.lease_until, c.errors[p.position], c.progress, c.leased_at
    into state, lane, attempt, claim_id, worker_name, lease_until, last_error, progress, leased_at
    from rowq.claim c
    cross join lateral array_position(c.message_ids, p_message_id) p (position)
    where c.queue_id = p_queue_id
      and c.claim_id >= v_from
      and p_message_id = any (c.message_ids);
    if found then
        return;
    end if;

    v_from := rowq.internal_read_safe_floor(p_queue_id, -3::smallint /* finished */);
    select f.state, f.lanes[p.position], f.attempts[p.position], f.finished_at
    into state, lane, attempt, finished_at
    from rowq.finished f
    cross join lateral array_position(f.message_ids, p_message_id) p (position)
    where f.queue_id = p_queue_id
      and f.finish_id >= v_from
      and p_message_id = any (f.message_ids);
    if found then
        return;
    end if;

    -- A message that was never returned is in the tail lane of its priority, and its seq is its
    -- message_id.
    select 'ready', r.lane, r.attempt, r.last_error
    into state, lane, attempt, last_error
    from unnest('{1,3,5,7,9,11,13,15,17,19}'::smallint[]) l (lane)
    cross join lateral (
        -- "offset 0" keeps this a lookup by key for each lane.
        select x.lane, x.attempt, x.last_error
        from rowq.ready x
        where x.queue_id = p_queue_id
          and x.lane = l.lane
          and x.seq = p_message_id
          and x.message_id = p_message_id
        offset 0
    ) r;
    if found then
        return;
    end if;

    select 'ready', r.lane, r.attempt, r.last_error
    into state, lane, attempt, last_error
    from rowq.ready r
    where r.queue_id = p_queue_id
      and r.message_id = p_message_id;
    if not found then
        -- Another session has moved the message between these reads, so it holds the message:
        -- report it as leased.
        state := 'leased';
    end if;
end;
$$;

create or replace function rowq.internal_explain_blocked(p_queue rowq.queue, p_message_id bigint)
returns table (
    reason      text,
    clears_at   timestamp with time zone,
    blocking_id bigint,
    claim_id    bigint,
    worker_name text,
    detail      text
)
language plpgsql
as $$
-- purpose   Return which message a blocked one waits for.
#variable_conflict use_column
declare
    v_group_key      text;
    v_predecessor_id bigint;
    v_place          record;
begin
    select b.predecessor_id into v_predecessor_id
    from rowq.blocked b
    where b.queue_id = p_queue.queue_id
      and b.message_id = p_message_id;
    if not found then
        select m.group_key into v_group_key
        from rowq.message m
        where m.queue_id = p_queue.queue_id
          and m.message_id = p_message_id;
        return query
        select g.reason, g.clears_at, g.blocking_id, g.claim_id, g.worker_name, g.detail
        from rowq.internal_explain_group(
            p_queue.queue_id, p_message_id, v_group_key, p_queue.group_limit
        ) g;
        return;
    end if;

    v_place := rowq.internal_locate_messages(p_queue.queue_id, v_predecessor_id);
    if v_place.state is null or v_place.state in ('completed', 'cancelled', 'expired') then
        reason := 'deferred';
        detail := 'its predecessor has ended; the next maintain resumes it';
    elsif v_place.state = 'dead' then
        reason := 'predecessor_dead';
        blocking_id := v_predecessor_id;
        detail := 'its predecessor is dead; reset, cancel or discard that';
    else
        reason := 'predecessor';
        clears_at := coalesce(v_place.lease_until, v_place.due_at);
        blocking_id := v_predecessor_id;
        claim_id := v_place.claim_id;
        worker_name := v_place.worker_name;
        detail := 'it waits for its predecessor, which is ' || v_place.state;
    end if;
    return next;
end;
$$;

create or replace function rowq.internal_explain_group(
    p_queue_id   integer,
    p_message_id bigint,
    p_group_key  text,
    p_slots      integer
)
returns table (
    reason      text,
    clears_at   timestamp with time zone,
    blocking_id bigint,
    claim_id    bigint,
    worker_name text,
    detail      text
)
language plpgsql
as $$
-- purpose   Return which messages have the slots of a group, and how many wait before this one.
#variable_conflict use_column
declare
    c_most  constant integer := 10000;
    -- A variable, so that the scan starts at it.
    v_from  bigint;
    v_since timestamp with time zone;
    v_count bigint := 0;
    v_rows  bigint;
begin
    -- A slot does not name its message, and there are few claims, so begin with these.
    v_from := rowq.internal_read_safe_floor(p_queue_id, -1::smallint /* claim */);
    return query
    select 'group', l.lease_until, l.message_id, l.claim_id, l.worker_name,
           'a message of its group is leased; the next one follows when it ends'
    from (
        select c.claim_id, c.worker_name, c.lease_until, u.message_id
        from rowq.claim c
        cross join lateral unnest(c.message_ids) u (message_id)
        where c.queue_id = p_queue_id
          and c.claim_id >= v_from
        limit c_most
    ) l
    cross join lateral (
        -- "offset 0" keeps this a lookup by key for each message.
        select
        from rowq.message m
        where m.queue_id = p_queue_id
          and m.message_id = l.message_id
          and m.group_key = p_group_key
        offset 0
    ) m;
    get diagnostics v_rows = row_count;
    v_count := v_count + v_rows;

    v_since := rowq.internal_from_microseconds(
        rowq.internal_read_safe_floor(p_queue_id, -4::smallint /* deferred */)
    );
    return query
    select case when d.due_at > clock_timestamp() then 'group_pause' else 'deferred' end,
           d.due_at, null::bigint, null::bigint, null::text,
           case
               when d.due_at > clock_timestamp() then 'its group pauses between two messages'
               else 'the next maintain passes on the slot of its group'
           end
    from (
        select x.due_at, x.group_key
        from rowq.deferred x
        where x.queue_id = p_queue_id
          and x.due_at >= v_since
        limit c_most
    ) d
    where d.group_key = p_group_key
    limit p_slots;
    get diagnostics v_rows = row_count;
    v_count := v_count + v_rows;

    if v_count < p_slots then
        return query
        select 'group_dead', null::timestamp with time zone, d.message_id, null::bigint, null::text,
               'a dead message holds the slot of its group; reset, cancel or discard it'
        from (
            select x.message_id, x.holds_slot
            from rowq.dead x
            where x.queue_id = p_queue_id
            limit c_most
        ) d
        cross join lateral (
            select
            from rowq.message m
            where m.queue_id = p_queue_id
              and m.message_id = d.message_id
              and m.group_key = p_group_key
            offset 0
        ) m
        where d.holds_slot;
        get diagnostics v_rows = row_count;
        v_count := v_count + v_rows;
    end if;

    if v_count < p_slots then
        v_since := rowq.internal_from_microseconds(
            rowq.internal_read_safe_floor(p_queue_id, -2::smallint /* delayed */)
        );
        return query
        select 'group', d.due_at, d.message_id, null::bigint, null::text,
               'a message of its group is delayed after an attempt'
        from (
            select x.message_id, x.due_at, x.group_key
            from rowq.delayed x
            where x.queue_id = p_queue_id
              and x.due_at >= v_since
            limit c_most
        ) d
        cross join lateral (
            select
            from rowq.message m
            where m.queue_id = p_queue_id
              and m.message_id = d.message_id
              and m.group_key = p_group_key
            offset 0
        ) m
        where d.group_key is null;
        get diagnostics v_rows = row_count;
        v_count := v_count + v_rows;
    end if;

    if v_count < p_slots then
        return query
        select 'group', null::timestamp with time zone, r.message_id, null::bigint, null::text,
               'a message of its group is ready and is delivered first'
        from (
            select z.message_id
            from unnest('{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19}'::smallint[]) l (lane)
            cross join lateral (
                select x.safe_seq
                from rowq.floor x
                where x.queue_id = p_queue_id
                  and x.lane = l.lane
                order by x.queue_id, x.lane, x.generation
                limit 1
            ) f
            cross join lateral (
                select y.message_id
                from rowq.ready y
                where y.queue_id = p_queue_id
                  and y.lane = l.lane
                  and y.seq >= f.safe_seq
                limit c_most
            ) z
            limit c_most
        ) r
        cross join lateral (
            select
            from rowq.message m
            where m.queue_id = p_queue_id
              and m.message_id = r.message_id
              and m.group_key = p_group_key
            offset 0
        ) m;
        get diagnostics v_rows = row_count;
        v_count := v_count + v_rows;
    end if;

    select count(*) into v_rows
    from (
        select
        from rowq.group_waiting g
        where g.queue_id = p_queue_id
          and g.group_key = p_group_key
          and g.message_id < p_message_id
        limit c_most
    ) h;
    if v_rows > 0 or v_count = 0 then
        return query
        select 'group', null::timestamp with time zone, null::bigint, null::bigint, null::text,
               case v_rows
                   when 1 then '1 message of its group waits before it'
                   else format('%s messages of its group wait before it', v_rows)
               end;
    end if;
end;
$$;

create or replace function rowq.internal_explain_ready(
    p_queue      rowq.queue,
    p_message_id bigint,
    p_lane       smallint
)
returns table (
    reason      text,
    clears_at   timestamp with time zone,
    blocking_id bigint,
    claim_id    bigint,
    worker_name text,
    detail      text
)
language plpgsql
as $$
-- purpose   Return why a ready message is not leased.
#variable_conflict use_column
declare
    c_most     constant integer := 10000;
    v_queue_id constant integer := p_queue.queue_id;
    v_now      constant timestamp with time zone := clock_timestamp();
    v_since    constant timestamp with time zone :=
        v_now - make_interval(secs => p_queue.rate_seconds);
    v_floor    bigint;
    v_from     bigint;
    v_seq      bigint;
    v_xmax     xid;
    v_pid      integer;
    v_claims   record;
begin
    v_floor := rowq.internal_read_floor(v_queue_id, p_lane);
    v_from := rowq.internal_read_safe_floor(v_queue_id, p_lane);
    -- A message that was never returned has its message_id as seq.
    select r.seq, r.xmax into v_seq, v_xmax
    from rowq.ready r
    where r.queue_id = v_queue_id
      and r.lane = p_lane
      and r.seq = p_message_id
      and r.message_id = p_message_id;
    if not found then
        select h.seq, h.xmax into v_seq, v_xmax
        from (
            select r.seq, r.xmax, r.message_id
            from rowq.ready r
            where r.queue_id = v_queue_id
              and r.lane = p_lane
              and r.seq >= v_from
            order by r.queue_id, r.lane, r.seq
            limit c_most
        ) h
        where h.message_id = p_message_id;
    end if;

    -- A row that an open transaction has locked or deleted names it in xmax.
    if v_xmax <> '0'::xid then
        select l.pid into v_pid
        from pg_locks l
        where l.locktype = 'transactionid'
          and l.transactionid = v_xmax
          and l.granted
          and l.pid is distinct from pg_backend_pid()
        limit 1;
        if found then
            return query
            select 'held', null::timestamp with time zone, null::bigint, null::bigint, null::text,
                   coalesce('session ' || v_pid, 'a prepared transaction')
                   || ' has it in an open transaction; that must end';
        end if;
    end if;

    if v_seq < v_floor then
        return query
        select 'late', null::timestamp with time zone, null::bigint, null::bigint, null::text,
               'it was committed after messages behind it were delivered; '
               'the next maintain finds it';
    end if;

    v_from := rowq.internal_read_safe_floor(v_queue_id, -1::smallint /* claim */);
    select coalesce(sum(h.messages), 0) as messages, min(h.lease_until) as first_until,
           max(h.lease_until) as last_until
    into v_claims
    from (
        select cardinality(c.message_ids) as messages, c.lease_until
        from rowq.claim c
        where c.queue_id = v_queue_id
          and c.claim_id >= v_from
        limit c_most
    ) h;
    if p_queue.max_leased > 0 and v_claims.messages >= p_queue.max_leased then
        return query
        select 'max_leased', v_claims.first_until, null::bigint, null::bigint, null::text,
               format('the queue is at its max_leased of %s', p_queue.max_leased);
    end if;

    if p_queue.rate_limit > 0 then
        return query
        select 'rate_limit', s.first_at + make_interval(secs => p_queue.rate_seconds), null::bigint,
               null::bigint, null::text,
               format('the queue is at its rate_limit of %s per rate_seconds', p_queue.rate_limit)
        from (
            select sum(h.messages) as messages, min(h.started_at) as first_at
            from (
                select x.messages, x.started_at
                from rowq.started x
                where x.queue_id = v_queue_id
                  and x.started_at > v_since
                limit c_most
            ) h
        ) s
        where s.messages >= p_queue.rate_limit;
    end if;

    -- The lanes before its own, then its own up to it.
    return query
    select case when h.messages = 0 then 'next' else 'behind' end, null::timestamp with time zone,
           null::bigint, null::bigint, null::text,
           case h.messages
               when 0 then 'the next dequeue that leases a message leases this one'
               when 1 then '1 ready message is before it'
               else format('%s ready messages are before it', h.messages)
           end
    from (
        select count(*) as messages
        from (
            select
            from unnest('{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19}'::smallint[]) l (lane)
            cross join lateral (
                select x.start_seq
                from rowq.floor x
                where x.queue_id = v_queue_id
                  and x.lane = l.lane
                order by x.queue_id, x.lane, x.generation
                limit 1
            ) f
            cross join lateral (
                select
                from rowq.ready r
                where r.queue_id = v_queue_id
                  and r.lane = l.lane
                  and r.seq >= f.start_seq
                  and r.seq < case when l.lane < p_lane then 9223372036854775807 else v_seq end
                limit c_most
            ) b
            where l.lane <= p_lane
            limit c_most
        ) x
    ) h;

    if p_queue.paused_at is null and (v_claims.last_until > v_now) is not true then
        return query
        select 'no_worker', null::timestamp with time zone, null::bigint, null::bigint, null::text,
               'no message of the queue is leased, and no worker has reported for 60 seconds'
        where not exists (
            select
            from rowq.worker w
            where w.queue_id = v_queue_id
              and w.last_seen_at > v_now - interval '60 seconds'
        );
    end if;
end;
$$;

create or replace function rowq.internal_expire(
    p_queue_id     integer,
    p_archive_days integer,
    p_limit        integer,
    p_pending_seq  bigint,
    p_pending_xid  xid8
)
returns integer
language plpgsql
as $$
-- purpose   Expire due messages, up to about p_limit; return how many expired.
-- locks     expiry rows, skipping locked ones; as internal_pop_expired; then as complete
declare
    c_steps        constant integer := 10;
    c_slow_scan    constant interval := interval '20 milliseconds';
    v_started      constant timestamp with time zone := clock_timestamp();
    -- A variable, not a function, so that the scan stops at the last row that is due.
    v_now          timestamp with time zone;
    v_from         timestamp with time zone;
    v_from_id      bigint := 0;
    v_due          record;
    v_popped       record;
    v_seen         integer := 0;
    v_row          record;
    v_kept         bigint[];
    v_kept_times   timestamp with time zone[];
    v_expired      integer := 0;
begin
    -- An old snapshot may not show a message in its present state, so it would seem to have ended.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return 0;
    end if;

    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_queue_id, -6::smallint /* expiry */)
    );
    for v_step in 1 .. c_steps loop
        exit when v_expired >= p_limit;
        -- Read the time again: messages that were resumed here have rows with later times.
        v_now := clock_timestamp();

        -- One statement checks all tables, so that no message is missed on its way from one to
        -- another. Scalar subqueries are lookups by key; "exists" may become a hash of all rows.
        select array_agg(h.expiry_id) ids, array_agg(h.message_id) message_ids,
               array_agg(
                   case when h.later_at > v_now and h.state <> '' then 'later' else h.state end
               ) states,
               array_agg(h.lane) lanes, array_agg(h.seq) seqs, array_agg(h.expires_at) times,
               array_agg(h.later_at) later_ats, max(h.expires_at) last_at, count(*) as due
        into v_due
        from (
            select e.expires_at, e.expiry_id, e.message_id, e.lane, e.seq,
                   m.expires_at as later_at,
                   case
                       when m.expires_at is null then null
                       when (
                           select true
                           from rowq.ready r
                           where r.queue_id = p_queue_id
                             and r.lane = e.lane
                             and r.seq = e.seq
                             and r.message_id = e.message_id
                       ) then 'ready'
                       when (
                           select true
                           from rowq.delayed d
                           where d.queue_id = p_queue_id
                             and d.message_id = e.message_id
                       ) then 'delayed'
                       when (
                           select true
                           from rowq.blocked b
                           where b.queue_id = p_queue_id
                             and b.message_id = e.message_id
                       ) then 'blocked'
                       when (
                           select true
                           from rowq.group_waiting g
                           where g.queue_id = p_queue_id
                             and g.group_key = m.group_key
                             and g.message_id = e.message_id
                       ) then 'group_waiting'
                   end as state
            from (
                select x.expires_at, x.expiry_id, x.message_id, x.lane, x.seq
                from rowq.expiry x
                where x.queue_id = p_queue_id
                  and (x.expires_at, x.expiry_id) > (v_from, v_from_id)
                  and x.expires_at <= v_now
                order by x.queue_id, x.expires_at, x.expiry_id
                limit p_limit
                for update skip locked
            ) e
            left join lateral (
                select y.message_id, y.group_key, y.expires_at
                from rowq.message y
                where y.queue_id = p_queue_id
                  and y.message_id = e.message_id
                offset 0
            ) m on true
        ) h;
        exit when v_due.due = 0;
        v_seen := v_seen + v_due.due;

        v_popped := rowq.internal_pop_expired(
            p_queue_id, v_due.message_ids, v_due.states, v_due.lanes, v_due.seqs
        );
        if v_popped.o_message_ids <> '{}' then
            perform rowq.internal_finish(
                p_queue_id, p_archive_days, v_popped.o_message_ids, v_popped.o_lanes,
                v_popped.o_attempts, 'expired', v_popped.o_without_slot
            );
            v_expired := v_expired + cardinality(v_popped.o_message_ids);
        end if;

        -- A message that is in none of these tables has ended, is dead, or is leased: the call that
        -- returns it adds a row. Keep the row of a locked message, and postpone one row of a
        -- message that expires later. Delete rows one by one: many may have the same time, and the
        -- planner may filter all due rows for any other form.
        for v_row in
            select u.expires_at, u.expiry_id, u.later_at, u.state = 'later' as is_later,
                   u.state is null
                   or u.message_id = any (v_popped.o_message_ids)
                   or u.state = 'later'
                   and row_number() over (
                       partition by u.message_id, u.state order by u.expiry_id
                   ) > 1
                       as is_done
            from unnest(
                v_due.times, v_due.ids, v_due.message_ids, v_due.states, v_due.later_ats
            ) u (expires_at, expiry_id, message_id, state, later_at)
        loop
            if v_row.is_later and not v_row.is_done then
                update rowq.expiry e
                set expires_at = least(v_row.later_at, v_now + interval '1 day')
                where e.queue_id = p_queue_id
                  and e.expires_at = v_row.expires_at
                  and e.expiry_id = v_row.expiry_id;
            elsif v_row.is_done then
                delete from rowq.expiry e
                where e.queue_id = p_queue_id
                  and e.expires_at = v_row.expires_at
                  and e.expiry_id = v_row.expiry_id;
            else
                v_kept := v_kept || v_row.expiry_id;
                v_kept_times := v_kept_times || v_row.expires_at;
            end if;
        end loop;

        select v_due.last_at, max(u.expiry_id) into v_from, v_from_id
        from unnest(v_due.ids, v_due.times) u (expiry_id, expires_at)
        where u.expires_at = v_due.last_at;
        exit when v_due.due < p_limit;
    end loop;

    -- Move the rows that are kept behind the other due rows if they could block them. Otherwise
    -- leave them: an idle transaction must not cause writes.
    if v_kept is not null and (
        v_seen >= c_steps * p_limit or clock_timestamp() - v_started > c_slow_scan
    ) then
        for v_row in
            select u.expires_at, u.expiry_id
            from unnest(v_kept_times, v_kept) u (expires_at, expiry_id)
        loop
            update rowq.expiry e
            set expires_at = v_now
            where e.queue_id = p_queue_id
              and e.expires_at = v_row.expires_at
              and e.expiry_id = v_row.expiry_id;
        end loop;
    end if;
    -- The rows were deleted just now, and safe_seq is only moved with a new row of floor.
    if v_seen > 0 then
        perform rowq.internal_move_floor(
            p_queue_id, -6::smallint /* expiry */, true, true, p_pending_seq, p_pending_xid
        );
    end if;
    return v_expired;
end;
$$;

create or replace function rowq.internal_pop_expired(
    p_queue_id    integer,
    p_message_ids bigint[],
    p_states      text[],
    p_lanes       smallint[],
    p_seqs        bigint[],
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_without_slot bigint[]
)
language plpgsql
as $$
-- purpose   Delete messages in the states where they were found, except locked ones, and return them.
-- locks     ready, delayed, blocked and group_waiting rows, skipped if locked
-- o_without_slot: those without a slot of a group.
declare
    v_row   record;
    v_found record;
begin
    o_message_ids := '{}';
    for v_row in
        select u.message_id, u.state, u.lane, u.seq, m.group_key
        from unnest(p_message_ids, p_states, p_lanes, p_seqs) u (message_id, state, lane, seq)
        cross join lateral (
            select x.group_key
            from rowq.message x
            where x.queue_id = p_queue_id
              and x.message_id = u.message_id
            offset 0
        ) m
        where u.state <> 'later'
    loop
        case v_row.state
            when 'ready' then
                select r.lane, r.attempt, false as is_without_slot into v_found
                from rowq.ready r
                where r.queue_id = p_queue_id
                  and r.lane = v_row.lane
                  and r.seq = v_row.seq
                  and r.message_id = v_row.message_id
                for update skip locked;
            when 'delayed' then
                select d.lane, d.attempt, d.group_key is not null as is_without_slot into v_found
                from rowq.delayed d
                where d.queue_id = p_queue_id
                  and d.message_id = v_row.message_id
                for update skip locked;
            when 'blocked' then
                select b.lane, 0::smallint as attempt, true as is_without_slot into v_found
                from rowq.blocked b
                where b.queue_id = p_queue_id
                  and b.message_id = v_row.message_id
                for update skip locked;
            else
                select g.lane, 0::smallint as attempt, true as is_without_slot into v_found
                from rowq.group_waiting g
                where g.queue_id = p_queue_id
                  and g.group_key = v_row.group_key
                  and g.message_id = v_row.message_id
                for update skip locked;
        end case;
        continue when not found;

        -- Check again under the lock: alter_message may have changed the time since then.
        perform
        from rowq.message m
        where m.queue_id = p_queue_id
          and m.message_id = v_row.message_id
          and m.expires_at <= clock_timestamp();
        continue when not found;

        case v_row.state
            when 'ready' then
                delete from rowq.ready r
                where r.queue_id = p_queue_id
                  and r.lane = v_row.lane
                  and r.seq = v_row.seq;
            when 'delayed' then
                delete from rowq.delayed d
                where d.queue_id = p_queue_id
                  and d.message_id = v_row.message_id;
            when 'blocked' then
                delete from rowq.blocked b
                where b.queue_id = p_queue_id
                  and b.message_id = v_row.message_id;
            else
                delete from rowq.group_waiting g
                where g.queue_id = p_queue_id
                  and g.group_key = v_row.group_key
                  and g.message_id = v_row.message_id;
        end case;
        o_message_ids := o_message_ids || v_row.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || v_found.attempt;
        if v_found.is_without_slot then
            o_without_slot := o_without_slot || v_row.message_id;
        end if;
    end loop;
end;
$$;
