-- Groups: at most group_limit messages of one group_key in work.
--
-- The right to be ready, leased or delayed for a retry is a slot, a row of group_slot. A message
-- without one waits in group_waiting, where dequeue never looks. The call that ends a message
-- passes its slot to the group's next message, or deletes it, in the same transaction. So a slot
-- cannot leak, and groups take turns. A producer whose message joins the group locks its slots
-- until its transaction ends, so the last one is not deleted while a message is coming. If a slot
-- cannot be passed on now, a row of deferred defers that to maintain: no worker waits for a
-- producer.
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
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- locks     new deferred rows
begin
    -- Go from group to group and not from message to message.
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
-- purpose   Take a slot of a group: true with one, false where the message has to wait behind others. p_group_limit: the limit, if the caller has read it.
-- locks     a new group_slot row, or the group's, shared; waits for who opens or closes it
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
        -- Take the first free number. The count keeps a limit that was lowered.
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
        -- Any limit leaves room for one.
        exit when v_slot_no is not null and v_limit = 1;

        if v_slot_no is null then
            -- Hold the slots to the end of the transaction: whoever would give the last one back
            -- knows by this that a message is coming.
            select count(*) into v_slots
            from (
                select
                from rowq.group_slot x
                where x.queue_id = p_queue_id
                  and x.group_key = p_group_key
                for key share
            ) h;
        end if;

        -- Each of these may have waited, and an alter_queue that has come meanwhile does not see
        -- this message. So what counts is the limit that is read after them.
        select q.group_limit into v_newest
        from rowq.queue q
        where q.queue_id = p_queue_id;
        if v_slot_no is null then
            exit when v_slots >= v_newest;
            -- The limit was raised, or a slot was given back in between: try once more.
        else
            exit when v_newest >= v_limit;
            -- The limit was lowered: give the slot back and try with that.
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
-- purpose   Let messages join their groups; return those that wait there, the others are for the caller to make ready.
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
        -- A group that is full stays so until the end of this transaction.
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
-- purpose   Pass on the slots of messages that have ended, one for each element; leave to maintain those that cannot be passed on now.
-- locks     as internal_pass_group_slots; new deferred rows
declare
    v_keys  text[] := p_group_keys;
    v_again text[];
    v_left  text[];
    v_pause double precision;
begin
    -- Several messages of one group may end at once where its limit is above 1: one after the
    -- other.
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
-- purpose   Pass one slot of each group on to its next message, or give it back; return the groups where that cannot be done now.
-- locks     group_waiting and group_slot rows, tried only; new ready rows
declare
    v_keys    text[] := p_group_keys;
    v_empty   text[];
    v_left    text[];
    v_look    record;
    v_slots   smallint[];
    v_lanes   smallint[];
    v_ids     bigint[];
    v_errors  text[];
begin
    -- The second look needs a snapshot of its own, which only read committed takes.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return p_group_keys;
    end if;

    for v_turn in 1 .. 2 loop
        -- Look at the first message that waits, and lock the first one that nobody holds. With a
        -- limit of 1 these must be the same, because a message that is being cancelled may stay,
        -- and must not be overtaken. A slot beyond a limit that was lowered is given back.
        v_empty := null;
        for v_look in
            select u.group_key, q.group_limit, q.group_pause_seconds, f.message_id as first_id,
                   w.message_id, w.lane, w.last_error, s.slot_no as surplus_no,
                   v_slots[u.place] as slot_no
            from rowq.queue q
            cross join unnest(v_keys) with ordinality u (group_key, place)
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
            if v_look.group_pause_seconds > 0 and not p_is_over then
                v_left := v_left || v_look.group_key;
            elsif v_look.surplus_no is not null then
                delete from rowq.group_slot x
                where x.queue_id = p_queue_id
                  and x.group_key = v_look.group_key
                  and x.slot_no = v_look.surplus_no;
            elsif v_look.message_id = v_look.first_id
                  or v_look.message_id is not null and v_look.group_limit > 1 then
                delete from rowq.group_waiting x
                where x.queue_id = p_queue_id
                  and x.group_key = v_look.group_key
                  and x.message_id = v_look.message_id;
                v_lanes := v_lanes || v_look.lane;
                v_ids := v_ids || v_look.message_id;
                v_errors := v_errors || v_look.last_error;
            elsif v_look.first_id is not null then
                v_left := v_left || v_look.group_key;
            elsif v_turn = 2 then
                delete from rowq.group_slot x
                where x.queue_id = p_queue_id
                  and x.group_key = v_look.group_key
                  and x.slot_no = v_look.slot_no;
            else
                v_empty := v_empty || v_look.group_key;
            end if;
        end loop;
        exit when v_empty is null;

        -- Nobody waits. Where a slot can be locked, nobody is coming either, and who was coming a
        -- moment ago is there by now, so look once more.
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
-- purpose   Do what internal_take_group_slot does, but return null where that takes longer than a moment.
-- locks     as internal_take_group_slot, waited for 20 ms, so that a deadlock never ends a producer
declare
    v_started constant timestamp with time zone := clock_timestamp();
begin
    return rowq.internal_take_group_slot(p_queue_id, p_group_key);
exception
    when lock_not_available or serialization_failure then
        return null;
    -- The wait for a row is two waits, and a time-out at the very end of the first one shows in the
    -- second as a cancel by the user. Any other cancel, or a statement_timeout, ends the call: only
    -- one that comes within this moment is lost.
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
-- purpose   Give a group whose limit was raised its new slots; return false where another look is needed.
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
