-- Predecessors: messages that wait for others to end, and deferred work.
--
-- A message with predecessors waits in blocked, which dequeue does not read. A row of successor
-- links it to one predecessor at a time, the newest unfinished one. When that ends, the message is
-- linked to the next, or resumes at the front of its priority. The call that ends a message resumes
-- up to 1000 successors and defers the rest. If a predecessor dies, its successors are held, resume
-- or die, as their on_predecessor_dead says, 1000 at a time. deferred has the work that another
-- transaction's locks prevented: slots, blocked messages, rows of ended messages. maintain runs it.
--
--   enqueue -> block -> await_predecessor, defer
--   end_linked, push_dead -> defer
--   enqueue_batch -> block_batch -> block, resume_blocked, defer
--   resume_blocked -> unblock
--   unblock -> await_predecessor
--   enqueue_batch -> parse_predecessors -> refuse_predecessors, has_unfinished
--   dequeue_fast, maintain_queue -> run_deferred -> retry_propagation, resume_successors,
--       resume_blocked
--   retry_propagation -> propagate_deaths
--   push_dead -> propagate_deaths -> unblock, defer
--   release_links, archive -> resume_successors -> defer, resume_blocked
--
-- Writes blocked, delayed, group_waiting, message, deferred, successor. Only reads dead, finished,
-- floor.

create or replace function rowq.internal_block(
    p_queue_id        integer,
    p_message_id      bigint,
    p_lane            smallint,
    p_due_at          timestamp with time zone,
    p_group_key       text,
    p_predecessor_ids bigint[],
    p_on_dead         text
)
returns boolean
language plpgsql
as $$
-- purpose   Let a new message wait for its predecessors, or fail; return false if all have ended.
-- locks     as internal_await_predecessor; new blocked, deferred and dead rows
declare
    v_await record;
begin
    select a.o_state, a.o_predecessor_id, a.o_remaining_ids into v_await
    from (
        select array_agg(distinct u.message_id order by u.message_id) as predecessor_ids
        from unnest(p_predecessor_ids) u (message_id)
    ) o
    cross join lateral rowq.internal_await_predecessor(
        p_queue_id, p_message_id, o.predecessor_ids, p_on_dead
    ) a;
    if v_await.o_state = 'free' then
        return false;
    elsif v_await.o_state = 'failed' then
        perform rowq.internal_push_dead(
            p_queue_id, array[p_lane], array[p_message_id], null,
            array[format('predecessor %s is dead', v_await.o_predecessor_id)], false
        );
        return true;
    end if;

    insert into rowq.blocked (
        queue_id, lane, message_id, predecessor_id, due_at, on_dead, group_key, remaining_ids
    )
    values (
        p_queue_id, p_lane, p_message_id, v_await.o_predecessor_id, p_due_at, p_on_dead,
        p_group_key,
        v_await.o_remaining_ids
    );
    if v_await.o_state = 'unsure' then
        perform rowq.internal_defer(p_queue_id, array[p_message_id], null, false);
    elsif current_setting('transaction_isolation') <> 'read committed' then
        -- An old snapshot does not show whether the predecessor is dead.
        perform rowq.internal_defer(
            p_queue_id, null, array[v_await.o_predecessor_id], true
        );
    else
        -- The archive reads successors only if this lane exists.
        perform rowq.internal_open_lanes(p_queue_id, '{-4}'::smallint[] /* deferred */);
    end if;
    return true;
end;
$$;

create or replace function rowq.internal_await_predecessor(
    p_queue_id           integer,
    p_message_id         bigint,
    p_predecessor_ids    bigint[],
    p_on_dead            text,
    p_max_checks         integer default null,
    out o_state          text,
    out o_predecessor_id bigint,
    out o_remaining_ids  bigint[],
    out o_checks          integer
)
language plpgsql
as $$
-- purpose   Let a message wait for the newest unfinished of its predecessors.
-- locks     the predecessor's message row, skipped if locked; a new successor row
-- o_state: waiting, free, failed, unsure if another transaction has locked the predecessor, or cut
-- after p_max_checks of them.
declare
    v_has_successors boolean;
    v_is_held        boolean;
    v_is_dead        boolean;
    v_position       integer;
    v_first          integer;
    v_from           bigint;
begin
    o_checks := 0;
    loop
        v_first := greatest(
            coalesce(cardinality(p_predecessor_ids) - p_max_checks + o_checks, 0), 0
        ) + 1;
        -- "offset 0" keeps this a lookup by key for one message at a time, up to the first hit.
        select u.message_id, u.position, h.has_successors
        into o_predecessor_id, v_position, v_has_successors
        from (
            select x.message_id, v_first - 1 + x.position as position
            from unnest(p_predecessor_ids[v_first:]) with ordinality x (message_id, position)
            order by x.position desc
            offset 0
        ) u
        cross join lateral (
            select m.has_successors
            from rowq.message m
            where m.queue_id = p_queue_id
              and m.message_id = u.message_id
            offset 0
        ) h
        limit 1;
        if not found then
            o_checks := o_checks + cardinality(p_predecessor_ids) - v_first + 1;
            o_state := case when v_first = 1 then 'free' else 'cut' end;
            v_position := v_first - 1;
            exit;
        end if;
        o_checks := o_checks + cardinality(p_predecessor_ids) - v_position + 1;

        -- Lock the row until the transaction ends: a call that ends the predecessor defers deleting
        -- it. This lock never waits: a row that no transaction has ever locked has xmax 0.
        update rowq.message m
        set has_successors = true
        where m.queue_id = p_queue_id
          and m.message_id = o_predecessor_id
          and m.xmax = 0
          and v_has_successors is not true;
        v_is_held := found;
        if v_is_held then
            v_has_successors := true;
        else
            select m.has_successors into v_has_successors
            from rowq.message m
            where m.queue_id = p_queue_id
              and m.message_id = o_predecessor_id
            for key share skip locked;
            v_is_held := found;
        end if;
        if not v_is_held then
            continue when not exists (
                select
                from rowq.message m
                where m.queue_id = p_queue_id
                  and m.message_id = o_predecessor_id
            );
            o_state := 'unsure';
            exit;
        end if;

        -- The archiver deletes the message row later, and resumes messages that did not see the end
        -- here.
        v_is_dead := p_on_dead in ('continue', 'fail') and exists (
            select
            from rowq.dead d
            where d.queue_id = p_queue_id
              and d.message_id = o_predecessor_id
        );
        v_from := rowq.internal_read_floor(p_queue_id, -3::smallint /* finished */);
        if v_is_dead and p_on_dead = 'continue' or exists (
            select
            from rowq.finished f
            where f.queue_id = p_queue_id
              and f.finish_id >= v_from
              and o_predecessor_id = any (f.message_ids)
        ) then
            -- Thousands may have ended since the last archive: skip all of them at once.
            p_predecessor_ids := array(
                select u.message_id
                from unnest(p_predecessor_ids[:v_position - 1]) u (message_id)
                where u.message_id not in (
                    select unnest(f.message_ids)
                    from rowq.finished f
                    where f.queue_id = p_queue_id
                      and f.finish_id >= v_from
                )
                order by u.message_id
            );
            continue;
        elsif v_is_dead then
            o_state := 'failed';
            exit;
        end if;

        o_state := 'waiting';
        if v_has_successors is not true then
            perform
            from rowq.message m
            where m.queue_id = p_queue_id
              and m.message_id = o_predecessor_id
            for no key update skip locked;
            if found then
                update rowq.message m
                set has_successors = true
                where m.queue_id = p_queue_id
                  and m.message_id = o_predecessor_id;
            else
                o_state := 'unsure';
            end if;
        end if;
        exit;
    end loop;

    if o_state = 'waiting' then
        insert into rowq.successor (queue_id, predecessor_id, message_id)
        values (p_queue_id, o_predecessor_id, p_message_id)
        on conflict do nothing;
        o_remaining_ids := nullif(p_predecessor_ids[:v_position - 1], '{}');
    elsif o_state in ('unsure', 'cut') then
        o_predecessor_id := null;
        o_remaining_ids := p_predecessor_ids[:v_position];
    end if;
end;
$$;

create or replace function rowq.internal_defer(
    p_queue_id        integer,
    p_message_ids     bigint[],
    p_predecessor_ids bigint[],
    p_are_dead        boolean
)
returns void
language plpgsql
as $$
-- purpose   Defer a check of blocked messages, and of messages whose predecessors have ended.
-- locks     new deferred rows
begin
    perform rowq.internal_open_lanes(p_queue_id, '{-4}'::smallint[] /* deferred */);
    insert into rowq.deferred (queue_id, is_hint, due_at, message_id, predecessor_id)
    select p_queue_id, u.predecessor_id is not null and p_are_dead, clock_timestamp(), u.message_id,
           u.predecessor_id
    from rows from (unnest(p_message_ids), unnest(p_predecessor_ids)) u (
        message_id, predecessor_id
    );
end;
$$;

create or replace function rowq.internal_block_batch(
    p_queue_id    integer,
    p_links       rowq.blocked[],
    p_awaited_ids bigint[]
)
returns bigint[]
language plpgsql
as $$
-- purpose   Let new messages of a batch wait for their predecessors; return those that wait or failed.
-- locks     as internal_block and internal_resume_blocked; new successor and blocked rows
-- p_awaited_ids: messages of the batch that are predecessors of others in it.
declare
    v_link    rowq.blocked;
    v_newest  bigint;
    v_late    bigint[];
    v_done    record;
    v_blocked bigint[] := '{}'::bigint[];
begin
    foreach v_link in array p_links
    loop
        v_newest := v_link.remaining_ids[cardinality(v_link.remaining_ids)];
        if v_newest = any (p_awaited_ids) then
            -- No other session sees this predecessor yet, so it needs no lock.
            insert into rowq.successor (queue_id, predecessor_id, message_id)
            values (p_queue_id, v_newest, v_link.message_id);
            insert into rowq.blocked (
                queue_id, lane, message_id, predecessor_id, due_at, on_dead, group_key,
                remaining_ids
            )
            values (
                p_queue_id, v_link.lane, v_link.message_id, v_newest, v_link.due_at, v_link.on_dead,
                v_link.group_key, nullif(array_remove(v_link.remaining_ids, v_newest), '{}')
            );
        elsif rowq.internal_block(
            p_queue_id, v_link.message_id, v_link.lane, v_link.due_at, v_link.group_key,
            v_link.remaining_ids,
            v_link.on_dead
        ) then
            -- The messages of the batch that name a failed one check it again.
            if v_link.on_dead = 'fail' and exists (
                select
                from rowq.dead d
                where d.queue_id = p_queue_id
                  and d.message_id = v_link.message_id
            ) then
                p_awaited_ids := array_remove(p_awaited_ids, v_link.message_id);
            end if;
        elsif v_link.group_key is not null and v_link.due_at is null then
            -- Its predecessors ended just now. Do not wait for its group any more: a session that
            -- ends a predecessor locked here waits for this transaction.
            insert into rowq.blocked (queue_id, lane, message_id, on_dead, group_key)
            values (p_queue_id, v_link.lane, v_link.message_id, v_link.on_dead, v_link.group_key);
            v_late := v_late || v_link.message_id;
        else
            continue;
        end if;
        v_blocked := v_blocked || v_link.message_id;
    end loop;

    if v_late is not null then
        v_done := rowq.internal_resume_blocked(p_queue_id, v_late, null, 10000);
        if v_done.o_again is not null then
            perform rowq.internal_defer(p_queue_id, v_done.o_again, null, false);
        end if;
    end if;
    return v_blocked;
end;
$$;

create or replace function rowq.internal_resume_blocked(
    p_queue_id    integer,
    p_message_ids bigint[],
    p_ended_id    bigint,
    inout p_max_checks integer,
    out o_again        bigint[]
)
language plpgsql
as $$
-- purpose   Resume blocked messages, or make them dead with a predecessor; return those to retry.
-- locks     as internal_unblock and internal_push_dead
declare
    v_done record;
begin
    v_done := rowq.internal_unblock(p_queue_id, p_message_ids, p_ended_id, p_max_checks);
    p_max_checks := v_done.p_max_checks;
    o_again := v_done.o_again;
    if v_done.o_failed_ids is not null then
        perform rowq.internal_push_dead(
            p_queue_id, v_done.o_failed_lanes, v_done.o_failed_ids, null, v_done.o_failed_errors,
            false
        );
    end if;
end;
$$;

create or replace function rowq.internal_unblock(
    p_queue_id    integer,
    p_message_ids bigint[],
    p_ended_id    bigint,
    inout p_max_checks  integer,
    out o_again         bigint[],
    out o_failed_ids    bigint[],
    out o_failed_lanes  smallint[],
    out o_failed_errors text[]
)
language plpgsql
as $$
-- purpose   Check what blocked messages wait for, and resume those that wait for nothing.
-- locks     blocked rows, skipped if locked; as internal_await_predecessor and
--           internal_try_take_group_slot
-- o_again: messages to retry. o_failed_ids: messages that fail with a predecessor. p_max_checks:
-- predecessors to check; it returns how many are left.
declare
    v_row           record;
    v_await         record;
    v_state         text;
    v_has_slot      boolean;
    v_is_delayed    boolean;
    v_is_late       boolean := false;
    v_left          integer := cardinality(p_message_ids);
    v_remaining_ids bigint[];
    v_ids           bigint[];
    v_lanes         smallint[];
begin
    -- Checking again requires a new snapshot, which only READ COMMITTED takes.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        o_again := p_message_ids;
        return;
    end if;

    for v_row in
        select u.message_id, b.message_id is not null as is_held, b.lane, b.predecessor_id,
               b.due_at, b.on_dead, b.group_key, b.remaining_ids
        from unnest(p_message_ids) u (message_id)
        left join lateral (
            select x.message_id, x.lane, x.predecessor_id, x.due_at, x.on_dead, x.group_key,
                   x.remaining_ids
            from rowq.blocked x
            where x.queue_id = p_queue_id
              and x.message_id = u.message_id
            for update skip locked
        ) b on true
    loop
        v_left := v_left - 1;
        if not v_row.is_held then
            -- It is gone, or another session is cancelling it.
            if exists (
                select
                from rowq.blocked b
                where b.queue_id = p_queue_id
                  and b.message_id = v_row.message_id
            ) then
                o_again := o_again || v_row.message_id;
            end if;
            continue;
        end if;

        v_state := 'free';
        v_remaining_ids := v_row.remaining_ids;
        if v_row.predecessor_id <> p_ended_id or p_ended_id is null then
            v_remaining_ids := v_remaining_ids || v_row.predecessor_id;
        end if;
        if array_remove(v_remaining_ids, null) <> '{}' then
            -- Each message has its share of the checks, so that one with many predecessors does not
            -- delay the others.
            v_await := rowq.internal_await_predecessor(
                p_queue_id, v_row.message_id, array_remove(v_remaining_ids, null), v_row.on_dead,
                p_max_checks / (v_left + 1)
            );
            p_max_checks := greatest(p_max_checks - v_await.o_checks, 0);
            v_state := v_await.o_state;
            if v_state in ('unsure', 'cut') then
                o_again := o_again || v_row.message_id;
            end if;
            if v_state = 'unsure' then
                continue;
            elsif v_state in ('waiting', 'cut') then
                update rowq.blocked b
                set predecessor_id = v_await.o_predecessor_id,
                    remaining_ids = v_await.o_remaining_ids
                where b.queue_id = p_queue_id
                  and b.message_id = v_row.message_id;
                continue;
            end if;
        end if;

        v_has_slot := true;
        v_is_delayed := coalesce(v_row.due_at > clock_timestamp(), false);
        if v_row.group_key is not null and v_state = 'free' and not v_is_delayed then
            -- Wait for a producer only once per call, and only briefly.
            v_has_slot := case
                when not v_is_late
                    then rowq.internal_try_take_group_slot(p_queue_id, v_row.group_key)
            end;
            if v_has_slot is null then
                v_is_late := true;
                o_again := o_again || v_row.message_id;
                continue;
            end if;
        end if;

        delete from rowq.blocked b
        where b.queue_id = p_queue_id
          and b.message_id = v_row.message_id;
        if v_state = 'failed' then
            o_failed_ids := o_failed_ids || v_row.message_id;
            o_failed_lanes := o_failed_lanes || v_row.lane;
            o_failed_errors := o_failed_errors
                || format('predecessor %s is dead', v_await.o_predecessor_id);
        elsif v_is_delayed then
            insert into rowq.delayed (queue_id, lane, message_id, due_at, group_key)
            values (
                p_queue_id, v_row.lane, v_row.message_id, v_row.due_at, v_row.group_key
            );
        elsif not v_has_slot then
            insert into rowq.group_waiting (queue_id, lane, message_id, group_key)
            values (p_queue_id, v_row.lane, v_row.message_id, v_row.group_key);
        else
            -- Messages that have been blocked go to the front, but groups take turns.
            v_ids := v_ids || v_row.message_id;
            v_lanes := v_lanes || case
                when v_row.group_key is null then v_row.lane / 2 * 2
                else v_row.lane
            end::smallint;
        end if;
    end loop;

    if v_ids is not null then
        perform rowq.internal_push_ready(
            p_queue_id, v_lanes, v_ids, array_fill(0::smallint, array[cardinality(v_ids)]), null
        );
    end if;
end;
$$;

create or replace function rowq.internal_parse_predecessors(
    p_queue_id    integer,
    p_input       jsonb,
    p_message_ids bigint[],
    p_group_keys  text[],
    p_kept_ids    bigint[],
    p_lanes       smallint[],
    p_due_ats     timestamp with time zone[],
    p_now         timestamp with time zone
)
returns rowq.blocked[]
language plpgsql
as $$
-- purpose   Check a batch's predecessors; return the new messages that may have to wait.
-- errors    RQ711
declare
    v_row   record;
    v_ids   bigint[];
    v_link  rowq.blocked;
    v_links rowq.blocked[] := '{}'::rowq.blocked[];
begin
    for v_row in
        select m.position, m.message_id, m.kept_id, m.group_key, m.lane,
               case when m.due_at > p_now then m.due_at end as due_at,
               m.predecessor_ids, m.predecessor_positions, m.on_predecessor_dead
        from rows from (
            jsonb_to_recordset(p_input) as (
                predecessor_ids       bigint[],
                predecessor_positions integer[],
                on_predecessor_dead   text
            ),
            unnest(p_message_ids),
            unnest(p_group_keys),
            unnest(p_kept_ids),
            unnest(p_lanes),
            unnest(p_due_ats)
        ) with ordinality m (
            predecessor_ids, predecessor_positions, on_predecessor_dead, message_id, group_key,
            kept_id, lane, due_at, position
        )
        where num_nonnulls(
            m.predecessor_ids, m.predecessor_positions, m.on_predecessor_dead
        ) > 0
    loop
        perform rowq.internal_refuse_predecessors(
            v_row.position, p_message_ids[1], v_row.predecessor_ids,
            v_row.predecessor_positions, v_row.on_predecessor_dead
        );
        continue when v_row.message_id <> v_row.kept_id;

        select array_agg(distinct u.message_id order by u.message_id) into v_ids
        from (
            select unnest(v_row.predecessor_ids)
            union all
            select p_kept_ids[p.position]
            from unnest(v_row.predecessor_positions) p (position)
        ) u (message_id);

        -- A message whose predecessors have all ended joins its group in the batch's order.
        if v_ids is not null and (
            v_row.group_key is null
            or v_row.due_at is not null
            or rowq.internal_has_unfinished(p_queue_id, v_ids, v_row.on_predecessor_dead)
        ) then
            v_link.lane := v_row.lane;
            v_link.message_id := v_row.message_id;
            v_link.due_at := v_row.due_at;
            v_link.on_dead := v_row.on_predecessor_dead;
            v_link.group_key := v_row.group_key;
            v_link.remaining_ids := v_ids;
            v_links := v_links || v_link;
        end if;
    end loop;
    return v_links;
exception
    when data_exception then
        perform rowq.internal_refuse_bad_value(e.message, e.position::integer)
        from jsonb_array_elements(p_input) with ordinality e (message, position);
        raise;
end;
$$;

create or replace function rowq.internal_refuse_predecessors(
    p_position        bigint,
    p_first_id        bigint,
    p_predecessor_ids bigint[],
    p_positions       integer[],
    p_on_dead         text
)
returns void
language plpgsql
as $$
-- purpose   Refuse a message of enqueue_batch, whose first id is p_first_id, if its predecessors are invalid.
-- errors    RQ711
declare
    v_error text;
begin
    v_error := coalesce(
        rowq.internal_message_error(
            null, null, null, null, 5, null, null, null, null, null, p_predecessor_ids, p_on_dead,
            null, null
        ),
        case
            when p_first_id <= any (p_predecessor_ids)
                then 'predecessor_ids must name existing messages'
            when not rowq.internal_is_id_list(p_positions)
                 or 1 > any (p_positions)
                 or p_position <= any (p_positions)
                then 'predecessor_positions must be a list of earlier positions in the batch'
        end
    );
    if v_error is not null then
        raise exception 'RQ711 invalid_argument: % (message %)', v_error, p_position
            using errcode = 'RQ711';
    end if;
end;
$$;

create or replace function rowq.internal_has_unfinished(
    p_queue_id    integer,
    p_message_ids bigint[],
    p_on_dead     text
)
returns boolean
language plpgsql
as $$
-- purpose   Return whether one of these predecessors is unfinished, as a read without locks shows.
declare
    v_from constant bigint := rowq.internal_read_floor(p_queue_id, -3::smallint /* finished */);
begin
    -- "offset 0" keeps this a lookup by key for one message at a time.
    return exists (
        select
        from unnest(p_message_ids) u (message_id)
        cross join lateral (
            select
            from rowq.message m
            where m.queue_id = p_queue_id
              and m.message_id = u.message_id
            offset 0
        ) h
        where not (
            p_on_dead is not distinct from 'continue' and exists (
                select
                from rowq.dead d
                where d.queue_id = p_queue_id
                  and d.message_id = u.message_id
            )
        )
          and u.message_id not in (
              select unnest(f.message_ids)
              from rowq.finished f
              where f.queue_id = p_queue_id
                and f.finish_id >= v_from
          )
    );
end;
$$;

create or replace function rowq.internal_run_deferred(
    p_queue_id    integer,
    p_limit       integer,
    p_may_reorder boolean default false
)
returns integer
language plpgsql
as $$
-- purpose   Run up to p_limit deferred items; return how many succeeded.
-- locks     deferred rows, skipping locked ones; as the helpers that it calls
-- With p_may_reorder, items that fail may be put behind those that were not reached.
declare
    -- Checking a predecessor takes about 2 microseconds, resuming a message about 60.
    c_checks      constant integer := 50;
    -- A constant, so that the scan stops at the last row that is due.
    v_now          constant timestamp with time zone := clock_timestamp();
    v_floor        bigint;
    v_item         record;
    v_due_ats      timestamp with time zone[];
    v_deferred_ids bigint[];
    v_message_ids  bigint[];
    v_seen_ats     timestamp with time zone[];
    v_seen_ids     bigint[];
    v_ended_id     bigint;
    v_gone         record;
    v_budget       record;
    v_done         record;
    v_count        integer;
    v_solved       integer := 0;
begin
    -- Only a queue that has deferred work has this lane.
    select f.start_seq into v_floor
    from rowq.floor f
    where f.queue_id = p_queue_id
      and f.lane = -4 /* deferred */
    order by f.queue_id, f.lane, f.generation
    limit 1;
    if not found then
        return 0;
    end if;

    select p_limit as p_most, c_checks * p_limit as p_max_checks into v_budget;
    for v_item in
        select r.due_at, r.deferred_id, r.is_hint, r.message_id, r.predecessor_id, r.group_key
        from rowq.deferred r
        where r.queue_id = p_queue_id
          and r.due_at >= rowq.internal_from_microseconds(v_floor)
          and r.due_at <= v_now
        order by r.queue_id, r.due_at, r.deferred_id
        limit p_limit
        for update skip locked
    loop
        v_seen_ats := v_seen_ats || v_item.due_at;
        v_seen_ids := v_seen_ids || v_item.deferred_id;
        -- Leave unresolved rows unchanged: an idle producer transaction must not cause writes.
        if v_item.group_key is null then
            -- An old snapshot does not show later changes.
            continue when current_setting('transaction_isolation')
                not in ('read committed', 'read uncommitted');
            -- This call has used up its limits: leave the item to the next one.
            continue when v_item.predecessor_id is not null
                and least(v_budget.p_most, v_budget.p_max_checks) = 0;
            v_ended_id := v_item.predecessor_id;
            if v_item.message_id = v_item.predecessor_id then
                -- It had ended while its row was locked. Its dedup key and slot were released then.
                v_gone := rowq.internal_delete_messages(p_queue_id, array[v_item.message_id]);
                continue when v_gone.o_held is not null;
                v_ended_id := v_gone.o_links[1][3]::bigint;
            elsif v_item.message_id is not null then
                v_due_ats := v_due_ats || v_item.due_at;
                v_deferred_ids := v_deferred_ids || v_item.deferred_id;
                v_message_ids := v_message_ids || v_item.message_id;
                continue;
            elsif v_item.is_hint then
                v_done := rowq.internal_retry_propagation(
                    p_queue_id, v_item.predecessor_id, v_budget.p_max_checks
                );
                v_budget.p_max_checks := v_done.p_max_checks;
                continue when not v_done.o_is_done;
                v_ended_id := null;
            end if;
            if v_ended_id is not null then
                v_budget := rowq.internal_resume_successors(
                    p_queue_id, array[v_ended_id], v_budget.p_most, v_budget.p_max_checks
                );
            end if;
        elsif v_item.is_hint then
            continue when not rowq.internal_add_group_slots(p_queue_id, v_item.group_key);
        else
            continue when rowq.internal_pass_group_slots(
                p_queue_id, array[v_item.group_key], true
            ) is not null;
        end if;
        delete from rowq.deferred r
        where r.queue_id = p_queue_id
          and r.due_at = v_item.due_at
          and r.deferred_id = v_item.deferred_id;
        v_solved := v_solved + 1;
    end loop;

    -- One call for all messages waits only once for a producer that adds their group's slot.
    if v_message_ids is not null then
        v_done := rowq.internal_resume_blocked(
            p_queue_id,
            array(
                select distinct u.message_id from unnest(v_message_ids) u (message_id) order by 1
            ),
            null, v_budget.p_max_checks
        );
        delete from rowq.deferred r
        using unnest(v_due_ats, v_deferred_ids, v_message_ids) u (due_at, deferred_id, message_id)
        where r.queue_id = p_queue_id
          and r.due_at = u.due_at
          and r.deferred_id = u.deferred_id
          and u.message_id <> all (coalesce(v_done.o_again, '{}'));
        get diagnostics v_count = row_count;
        v_solved := v_solved + v_count;
    end if;

    -- If they kept others from being reached, put them behind the others.
    if p_may_reorder and cardinality(v_seen_ids) >= p_limit and v_solved < p_limit and exists (
        select
        from rowq.deferred r
        where r.queue_id = p_queue_id
          and (r.due_at, r.deferred_id) > (v_seen_ats[p_limit], v_seen_ids[p_limit])
          and r.due_at <= v_now
    ) then
        for v_item in
            select u.due_at, u.deferred_id
            from unnest(v_seen_ats, v_seen_ids) u (due_at, deferred_id)
        loop
            update rowq.deferred r
            set due_at = v_now
            where r.queue_id = p_queue_id
              and r.due_at = v_item.due_at
              and r.deferred_id = v_item.deferred_id;
        end loop;
    end if;
    return v_solved;
end;
$$;

create or replace function rowq.internal_retry_propagation(
    p_queue_id   integer,
    p_message_id bigint,
    inout p_max_checks integer,
    out o_is_done      boolean
)
language plpgsql
as $$
-- purpose   Propagate a death again; o_is_done is false if a producer is adding a successor.
-- locks     the message row, skipped if locked; as internal_propagate_deaths and internal_push_dead
declare
    v_next record;
begin
    perform
    from rowq.message m
    where m.queue_id = p_queue_id
      and m.message_id = p_message_id
    for update skip locked;
    if not found then
        o_is_done := not exists (
            select
            from rowq.message m
            where m.queue_id = p_queue_id
              and m.message_id = p_message_id
        );
        return;
    end if;

    -- If the message was reset, its successors wait as before.
    o_is_done := true;
    if exists (
        select
        from rowq.dead d
        where d.queue_id = p_queue_id
          and d.message_id = p_message_id
    ) then
        v_next := rowq.internal_propagate_deaths(p_queue_id, array[p_message_id], p_max_checks);
        p_max_checks := v_next.p_max_checks;
        if v_next.o_failed_ids is not null then
            p_max_checks := rowq.internal_push_dead(
                p_queue_id, v_next.o_failed_lanes, v_next.o_failed_ids, null,
                v_next.o_failed_errors, false, p_max_checks
            );
        end if;
    end if;
end;
$$;

create or replace function rowq.internal_propagate_deaths(
    p_queue_id    integer,
    p_message_ids bigint[],
    inout p_max_checks  integer default 10000,
    out o_failed_ids    bigint[],
    out o_failed_lanes  smallint[],
    out o_failed_errors text[]
)
language plpgsql
as $$
-- purpose   Resume successors of dead messages that continue; return those that fail with them.
-- locks     message rows, skipped if locked; successor rows; as internal_unblock; new deferred rows
declare
    c_most     constant integer := 1000;
    v_awaited  bigint[];
    v_later    bigint[];
    v_dead_id  bigint;
    v_ids      bigint[];
    v_count    integer := 0;
    v_done     record;
begin
    -- If a row is locked, a producer is adding a successor: defer the check.
    select array_agg(u.message_id) filter (where m.has_successors),
           array_agg(u.message_id) filter (where m.message_id is null)
    into v_awaited, v_later
    from unnest(p_message_ids) u (message_id)
    left join lateral (
        select x.message_id, x.has_successors
        from rowq.message x
        where x.queue_id = p_queue_id
          and x.message_id = u.message_id
        for update skip locked
    ) m on true;
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        v_later := v_later || v_awaited;
        v_awaited := null;
    end if;

    foreach v_dead_id in array coalesce(v_awaited, '{}') loop
        -- A wide tree also dies in steps.
        if v_count >= c_most then
            v_later := v_later || v_dead_id;
            continue;
        end if;
        select array_agg(h.message_id order by h.message_id) into v_ids
        from (
            select s.message_id
            from rowq.successor s
            cross join lateral (
                select
                from rowq.blocked b
                where b.queue_id = p_queue_id
                  and b.message_id = s.message_id
                  and b.on_dead in ('continue', 'fail')
                offset 0
            ) b
            where s.queue_id = p_queue_id
              and s.predecessor_id = v_dead_id
            order by s.queue_id, s.predecessor_id, s.message_id
            limit c_most
            for update of s skip locked
        ) h;
        continue when v_ids is null;
        delete from rowq.successor s
        where s.queue_id = p_queue_id
          and s.predecessor_id = v_dead_id
          and s.message_id = any (v_ids);
        if cardinality(v_ids) = c_most then
            v_later := v_later || v_dead_id;
        end if;
        v_count := v_count + cardinality(v_ids);

        v_done := rowq.internal_unblock(p_queue_id, v_ids, null, p_max_checks);
        p_max_checks := v_done.p_max_checks;
        if v_done.o_again is not null then
            perform rowq.internal_defer(p_queue_id, v_done.o_again, null, false);
        end if;
        o_failed_ids := o_failed_ids || v_done.o_failed_ids;
        o_failed_lanes := o_failed_lanes || v_done.o_failed_lanes;
        o_failed_errors := o_failed_errors || v_done.o_failed_errors;
    end loop;

    if v_later is not null then
        perform rowq.internal_defer(p_queue_id, null, v_later, true);
    end if;
end;
$$;

create or replace function rowq.internal_resume_successors(
    p_queue_id         integer,
    p_predecessor_ids  bigint[],
    inout p_most       integer default 1000,
    inout p_max_checks integer default 10000
)
language plpgsql
as $$
-- purpose   Resume the messages that waited for these ended ones; defer those that cannot resume now.
-- locks     successor rows; as internal_resume_blocked; new deferred rows
-- p_most: messages to resume. p_max_checks: as for internal_unblock. Both return how many are left.
declare
    v_predecessor_id bigint;
    v_ids            bigint[];
    v_gone           record;
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        -- An old snapshot does not show all successors.
        perform rowq.internal_defer(p_queue_id, null, p_predecessor_ids, false);
        return;
    end if;

    foreach v_predecessor_id in array p_predecessor_ids loop
        with cut as (
            delete from rowq.successor s
            where s.queue_id = p_queue_id
              and s.predecessor_id = v_predecessor_id
              and s.message_id = any (array(
                  select x.message_id
                  from rowq.successor x
                  where x.queue_id = p_queue_id
                    and x.predecessor_id = v_predecessor_id
                  order by x.queue_id, x.predecessor_id, x.message_id
                  limit p_most
                  for update skip locked
              ))
            returning s.message_id
        )
        select array_agg(c.message_id order by c.message_id) into v_ids
        from cut c;
        if v_ids is not null then
            p_most := p_most - cardinality(v_ids);
            v_gone := rowq.internal_resume_blocked(
                p_queue_id, v_ids, v_predecessor_id, p_max_checks
            );
            p_max_checks := v_gone.p_max_checks;
            if v_gone.o_again is not null then
                perform rowq.internal_defer(p_queue_id, v_gone.o_again, null, false);
            end if;
        end if;
        if p_most = 0 then
            perform rowq.internal_defer(
                p_queue_id, null,
                p_predecessor_ids[array_position(p_predecessor_ids, v_predecessor_id):], false
            );
            return;
        end if;
    end loop;
end;
$$;
