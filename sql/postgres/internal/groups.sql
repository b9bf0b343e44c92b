-- Groups: at most group_limit messages of one group_key in work.
--
-- A message needs a slot, a row of group_slot, to be ready, leased or delayed for a retry. A
-- message without a slot waits in group_waiting, which dequeue does not read. The call that ends a
-- message passes its slot to the group's next message, or deletes it, in the same transaction. So
-- slots cannot leak, and groups take turns. A producer that finds the group full locks its slots
-- until its transaction ends, so that the last slot is not deleted before that. No worker waits
-- for a producer: if a slot cannot be passed on now, a row of deferred leaves it to maintain.
--
--   alter_queue -> defer_group_checks
--   enqueue -> take_group_slot
--   enqueue_batch, reset -> join_groups -> take_group_slot
--   release_links -> release_group_slots -> pass_group_slots
--   run_deferred -> pass_group_slots
--   promote, unblock -> try_take_group_slot -> take_group_slot
--   run_deferred -> add_group_slots -> try_take_group_slot, release_group_slots
--
-- Writes group_waiting, group_slot, deferred. Only reads queue.

create or replace function rowq.internal_defer_group_checks(p_queue_id integer)
returns void
language plpgsql
as $$
-- purpose   Defer a check for new slots for each group in which messages wait.
-- locks     new deferred rows
begin
    -- Skip from group to group, so that not every message is read.
    insert into rowq.deferred (queue_id, is_hint, due_at, group_key)
    with recursive waiting as (
        (
            select x.group_key
            from rowq.group_waiting x
            where x.queue_id = p_queue_id
            order by x.queue_id, x.group_key, x.message_id
            limit 1
        )
        union all
        select n.group_key
        from waiting w
        cross join lateral (
            select x.group_key
            from rowq.group_waiting x
            where x.queue_id = p_queue_id
              and x.group_key > w.group_key
            order by x.queue_id, x.group_key, x.message_id
            limit 1
        ) n
    )
    select p_queue_id, true, clock_timestamp(), w.group_key
    from waiting w;
    if found then
        perform rowq.internal_open_lanes(p_queue_id, '{-4}'::smallint[] /* deferred */);
    end if;
end;
$$;

create or replace function rowq.internal_take_group_slot(
    p_queue_id    integer,
    p_group_key   text,
    p_group_limit integer default null
)
returns boolean
language plpgsql
as $$
-- purpose   Take a slot of a group; return false if the message has to wait.
-- locks     a new group_slot row, or the group's rows, shared; waits for sessions that add or
--           delete them
declare
    v_limit   integer := p_group_limit;
    v_newest  integer;
    v_slot_no smallint;
    v_slots   integer;
begin
    if v_limit is null then
        select q.group_limit into v_limit
        from rowq.queue q
        where q.queue_id = p_queue_id;
    end if;

    loop
        -- Add the first free slot. The count respects a limit that was lowered.
        insert into rowq.group_slot (queue_id, group_key, slot_no)
        select p_queue_id, p_group_key, n.slot_no
        from (
            select min(s.slot_no) as slot_no
            from generate_series(1, v_limit) s (slot_no)
            where not exists (
                select
                from rowq.group_slot x
                where x.queue_id = p_queue_id
                  and x.group_key = p_group_key
                  and x.slot_no = s.slot_no
            )
        ) n
        where n.slot_no is not null
          and v_limit > (
              select count(*)
              from rowq.group_slot x
              where x.queue_id = p_queue_id
                and x.group_key = p_group_key
          )
        on conflict (queue_id, group_key, slot_no) do nothing
        returning slot_no into v_slot_no;
        -- Every limit allows one slot.
        exit when v_slot_no is not null and v_limit = 1;

        if v_slot_no is null then
            -- Lock the slots until the transaction ends, so that no session deletes the last one
            -- while this message joins.
            select count(*) into v_slots
            from (
                select
                from rowq.group_slot x
                where x.queue_id = p_queue_id
                  and x.group_key = p_group_key
                for key share
            ) h;
        end if;

        -- The statements above may have waited, and an alter_queue that ran then did not see this
        -- message. Read the limit again.
        select q.group_limit into v_newest
        from rowq.queue q
        where q.queue_id = p_queue_id;
        if v_slot_no is null then
            exit when v_slots >= v_newest;
            -- The limit was raised, or a slot was deleted: retry.
        else
            exit when v_newest >= v_limit;
            -- The limit was lowered: delete the slot and retry.
            delete from rowq.group_slot x
            where x.queue_id = p_queue_id
              and x.group_key = p_group_key
              and x.slot_no = v_slot_no;
        end if;
        v_limit := v_newest;
    end loop;
    return v_slot_no is not null;
end;
$$;

create or replace function rowq.internal_join_groups(
    p_queue_id    integer,
    p_group_keys  text[],
    p_message_ids bigint[],
    p_lanes       smallint[],
    p_errors      text[] default null
)
returns bigint[]
language plpgsql
as $$
-- purpose   Let messages join their groups; return those that wait. The caller makes the others ready.
-- locks     as internal_take_group_slot, in the order of the keys; new group_waiting rows
declare
    v_message  record;
    v_full_key text;
    v_waiting  bigint[] := '{}'::bigint[];
begin
    for v_message in
        select u.group_key, u.message_id
        from unnest(p_group_keys, p_message_ids) u (group_key, message_id)
        where u.group_key is not null
        order by u.group_key, u.message_id
    loop
        -- A full group stays full until this transaction ends.
        if v_message.group_key is distinct from v_full_key then
            continue when rowq.internal_take_group_slot(p_queue_id, v_message.group_key);
            v_full_key := v_message.group_key;
        end if;
        v_waiting := v_waiting || v_message.message_id;
    end loop;

    insert into rowq.group_waiting (queue_id, lane, message_id, group_key, last_error)
    select p_queue_id, u.lane, u.message_id, u.group_key, u.last_error
    from unnest(p_group_keys, p_message_ids, p_lanes, p_errors)
        u (group_key, message_id, lane, last_error)
    where u.message_id = any (v_waiting);
    return v_waiting;
end;
$$;

create or replace function rowq.internal_release_group_slots(
    p_queue_id   integer,
    p_group_keys text[]
)
returns void
language plpgsql
as $$
-- purpose   Pass on the slots of ended messages, one for each key; defer those that cannot be passed now.
-- locks     as internal_pass_group_slots; new deferred rows
declare
    v_keys  text[] := p_group_keys;
    v_again text[];
    v_left  text[];
    v_pause double precision;
begin
    -- If group_limit is above 1, several messages of one group may end at once: pass their slots
    -- one after the other.
    while v_keys is not null loop
        if cardinality(v_keys) > 1 then
            select array_agg(u.group_key order by u.group_key) filter (where u.turn = 1),
                   array_agg(u.group_key) filter (where u.turn > 1)
            into v_keys, v_again
            from (
                select k.group_key, row_number() over (partition by k.group_key) as turn
                from unnest(v_keys) k (group_key)
            ) u;
        else
            v_again := null;
        end if;
        v_left := v_left || rowq.internal_pass_group_slots(p_queue_id, v_keys, false);
        v_keys := v_again;
    end loop;

    if v_left is not null then
        select q.group_pause_seconds into v_pause
        from rowq.queue q
        where q.queue_id = p_queue_id;
        perform rowq.internal_open_lanes(p_queue_id, '{-4}'::smallint[] /* deferred */);
        insert into rowq.deferred (queue_id, due_at, group_key)
        select p_queue_id, clock_timestamp() + make_interval(secs => v_pause), u.group_key
        from unnest(v_left) u (group_key);
    end if;
end;
$$;

create or replace function rowq.internal_pass_group_slots(
    p_queue_id   integer,
    p_group_keys text[],
    p_is_over    boolean
)
returns text[]
language plpgsql
as $$
-- purpose   Pass one slot per group to its next message, or delete it; return the groups to retry.
-- locks     group_waiting and group_slot rows, skipped if locked; new ready rows
declare
    v_keys    text[] := p_group_keys;
    v_empty   text[];
    v_left    text[];
    v_group   record;
    v_slots   smallint[];
    v_lanes   smallint[];
    v_ids     bigint[];
    v_errors  text[];
begin
    -- The second pass needs a new snapshot, which only READ COMMITTED takes.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return p_group_keys;
    end if;

    for v_pass in 1 .. 2 loop
        -- Find the first waiting message, and lock the first unlocked one. With a limit of 1 they
        -- must be the same: a message that is being cancelled may stay, and must not be overtaken.
        -- A slot above a lowered limit is deleted.
        v_empty := null;
        for v_group in
            select u.group_key, q.group_limit, q.group_pause_seconds, f.message_id as first_id,
                   w.message_id, w.lane, w.last_error, s.slot_no as excess_no,
                   v_slots[u.position] as slot_no
            from rowq.queue q
            cross join unnest(v_keys) with ordinality u (group_key, position)
            left join lateral (
                select x.slot_no
                from rowq.group_slot x
                where x.queue_id = p_queue_id
                  and x.group_key = u.group_key
                  and x.slot_no > q.group_limit
                  and exists (
                      select
                      from rowq.group_slot y
                      where y.queue_id = p_queue_id
                        and y.group_key = u.group_key
                        and y.slot_no <= q.group_limit
                  )
                order by x.queue_id, x.group_key, x.slot_no
                limit 1
                for update skip locked
            ) s on true
            left join lateral (
                select x.message_id
                from rowq.group_waiting x
                where x.queue_id = p_queue_id
                  and x.group_key = u.group_key
                order by x.queue_id, x.group_key, x.message_id
                limit 1
            ) f on true
            left join lateral (
                select x.message_id, x.lane, x.last_error
                from rowq.group_waiting x
                where x.queue_id = p_queue_id
                  and x.group_key = u.group_key
                  and x.message_id >= f.message_id
                order by x.queue_id, x.group_key, x.message_id
                limit 1
                for update skip locked
            ) w on true
            where q.queue_id = p_queue_id
        loop
            if v_group.group_pause_seconds > 0 and not p_is_over then
                v_left := v_left || v_group.group_key;
            elsif v_group.excess_no is not null then
                delete from rowq.group_slot x
                where x.queue_id = p_queue_id
                  and x.group_key = v_group.group_key
                  and x.slot_no = v_group.excess_no;
            elsif v_group.message_id = v_group.first_id
                  or v_group.message_id is not null and v_group.group_limit > 1 then
                delete from rowq.group_waiting x
                where x.queue_id = p_queue_id
                  and x.group_key = v_group.group_key
                  and x.message_id = v_group.message_id;
                v_lanes := v_lanes || v_group.lane;
                v_ids := v_ids || v_group.message_id;
                v_errors := v_errors || v_group.last_error;
            elsif v_group.first_id is not null then
                v_left := v_left || v_group.group_key;
            elsif v_pass = 2 then
                delete from rowq.group_slot x
                where x.queue_id = p_queue_id
                  and x.group_key = v_group.group_key
                  and x.slot_no = v_group.slot_no;
            else
                v_empty := v_empty || v_group.group_key;
            end if;
        end loop;
        exit when v_empty is null;

        -- The group is empty. If a slot can be locked, no producer is joining, and those that were
        -- have committed: check once more.
        select array_agg(u.group_key) filter (where t.slot_no is not null),
               array_agg(t.slot_no) filter (where t.slot_no is not null),
               v_left || array_agg(u.group_key) filter (where t.slot_no is null)
        into v_keys, v_slots, v_left
        from unnest(v_empty) u (group_key)
        left join lateral (
            select x.slot_no
            from rowq.group_slot x
            where x.queue_id = p_queue_id
              and x.group_key = u.group_key
            order by x.queue_id desc, x.group_key desc, x.slot_no desc
            limit 1
            for update skip locked
        ) t on true;
        exit when v_keys is null;
    end loop;

    if v_ids is not null then
        perform rowq.internal_push_ready(
            p_queue_id, v_lanes, v_ids, array_fill(0::smallint, array[cardinality(v_ids)]), v_errors
        );
    end if;
    return v_left;
end;
$$;

create or replace function rowq.internal_try_take_group_slot(p_queue_id integer, p_group_key text)
returns boolean
language plpgsql
set lock_timeout = '20ms'
as $$
-- purpose   Take a slot as internal_take_group_slot does; return null if that takes 20 ms.
-- locks     as internal_take_group_slot, waits up to 20 ms, so that a deadlock never ends a
--           producer
declare
    v_started constant timestamp with time zone := clock_timestamp();
begin
    return rowq.internal_take_group_slot(p_queue_id, p_group_key);
exception
    when lock_not_available or serialization_failure then
        return null;
    -- A row wait has two phases. A timeout at the end of the first is reported in the second as a
    -- cancel by the user. So a cancel within this interval is ignored; any other cancel, or a
    -- statement_timeout, ends the call.
    when query_canceled then
        if clock_timestamp() - v_started
           not between interval '20 milliseconds' and interval '30 milliseconds' then
            raise;
        end if;
        return null;
end;
$$;

create or replace function rowq.internal_add_group_slots(p_queue_id integer, p_group_key text)
returns boolean
language plpgsql
as $$
-- purpose   Add the slots that a raised limit allows a group; return false to retry.
-- locks     as internal_try_take_group_slot and internal_release_group_slots
declare
    v_has_slot boolean;
begin
    while exists (
        select
        from rowq.group_waiting x
        where x.queue_id = p_queue_id
          and x.group_key = p_group_key
    ) loop
        v_has_slot := rowq.internal_try_take_group_slot(p_queue_id, p_group_key);
        exit when not v_has_slot;
        if v_has_slot is null then
            return false;
        end if;
        perform rowq.internal_release_group_slots(p_queue_id, array[p_group_key]);
    end loop;
    return true;
end;
$$;
