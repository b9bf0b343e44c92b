-- Finish: how messages leave a claim, and how they end.
--
-- The claim is the fence. A call that finishes messages first deletes the claim, or takes them out
-- of it; a second session finds nothing there, and its messages are stale. reap does the same for
-- expired claims. An ended message is deleted, or kept in finished for the archive, and its links
-- are released in the same transaction: dedup key, group slot, successors. A dead message moves to
-- dead and keeps its row. An end does not wait for a producer that has locked the message's row:
-- maintain deletes the row by a row of deferred.
--
--   purge_queue, complete, discard_dead, ... -> finish -> end_linked
--   complete -> end_linked -> read_links, delete_messages, release_links
--   run_deferred, archive -> delete_messages
--   complete -> release_links
--   complete, retry_later, fail_now, ... -> pop_claimed
--   retry_later, fail_now, block, ... -> push_dead -> read_links, release_links
--   reset, discard_dead -> lock_dead
--   maintain_queue -> reap -> push_dead
--
-- Writes claim, dead, dedup, finished, message. Only reads queue.

create or replace function rowq.internal_finish(
    p_queue_id     integer,
    p_archive_days integer,
    p_message_ids  bigint[],
    p_lanes        smallint[],
    p_attempts     smallint[],
    p_state        text,
    p_without_slot bigint[] default null
)
returns void
language plpgsql
as $$
-- purpose   Delete ended messages or pass them to the archive, and release their links.
-- locks     as internal_end_linked; result rows
declare
    v_rest bigint[] := p_message_ids;
begin
    if p_archive_days > 0 then
        insert into rowq.finished (queue_id, finished_at, message_ids, lanes, attempts, state)
        values (p_queue_id, clock_timestamp(), p_message_ids, p_lanes, p_attempts, p_state);
    end if;

    if p_without_slot is not null then
        perform rowq.internal_end_linked(p_queue_id, p_without_slot, p_archive_days > 0, false);
        v_rest := array(
            select u.message_id
            from unnest(p_message_ids) u (message_id)
            where u.message_id <> all (p_without_slot)
        );
    end if;

    perform rowq.internal_end_linked(p_queue_id, v_rest, p_archive_days > 0, true);

    -- complete stores the results of completed messages itself.
    if p_state <> 'completed' then
        perform rowq.internal_push_result(p_queue_id, p_message_ids, p_state);
    end if;
end;
$$;

create or replace function rowq.internal_end_linked(
    p_queue_id    integer,
    p_message_ids bigint[],
    p_is_archived boolean,
    p_have_slots  boolean
)
returns void
language plpgsql
as $$
-- purpose   Release the links of ended messages, and delete them unless they are archived.
-- locks     as internal_delete_messages and internal_release_links; new deferred rows
declare
    v_deleted record;
    v_links text[];
begin
    if p_is_archived then
        v_links := rowq.internal_read_links(p_queue_id, p_message_ids);
    else
        v_deleted := rowq.internal_delete_messages(p_queue_id, p_message_ids);
        v_links := v_deleted.o_links;
        if v_deleted.o_held is not null then
            -- A producer may name it as a predecessor and never commit. The message has ended, so
            -- defer only its row and what that producer adds.
            v_links := v_links || rowq.internal_read_links(p_queue_id, v_deleted.o_held);
            perform rowq.internal_defer(p_queue_id, v_deleted.o_held, v_deleted.o_held, false);
        end if;
    end if;
    if v_links is not null then
        perform rowq.internal_release_links(p_queue_id, v_links, p_message_ids, p_have_slots);
    end if;
end;
$$;

create or replace function rowq.internal_read_links(p_queue_id integer, p_message_ids bigint[])
returns text[]
language plpgsql
as $$
-- purpose   Return the links of messages, as internal_release_links takes them; null without links.
declare
    v_links text[];
begin
    select array_agg(
               array[
                   m.dedup_key, m.group_key,
                   case when m.has_successors then u.message_id::text end
               ]
               order by m.dedup_key
           )
    into v_links
    from unnest(p_message_ids) u (message_id)
    cross join lateral (
        -- offset 0 keeps this plan, a lookup per message, regardless of row estimates.
        select x.dedup_key, x.group_key, x.has_successors
        from rowq.message x
        where x.queue_id = p_queue_id
          and x.message_id = u.message_id
        offset 0
    ) m
    where m.dedup_key is not null
       or m.group_key is not null
       or m.has_successors;
    return v_links;
end;
$$;

create or replace function rowq.internal_delete_messages(
    p_queue_id    integer,
    p_message_ids bigint[],
    p_are_locked  boolean default false,
    out o_links   text[],
    out o_held    bigint[]
)
language plpgsql
as $$
-- purpose   Delete messages and return their links; o_held are those locked by other transactions.
-- locks     message rows, skipping locked ones; none if p_are_locked, when the caller holds them
declare
    c_close_together constant integer := 10000;
    v_low            bigint;
    v_high           bigint;
    v_count          integer := 0;
    v_message_id     bigint;
    v_link           text[];
begin
    if cardinality(p_message_ids) > 1 then
        select min(u.message_id), max(u.message_id) into v_low, v_high
        from unnest(p_message_ids) u (message_id);
    end if;

    -- The bounds restrict the delete to its key range. A plan made while the table was small would
    -- use "= any" as a filter over all messages of the queue, and the session would keep that plan.
    -- A row that was never locked has xmax 0, and deleting it does not wait; the loop below takes
    -- any other row.
    if v_high - v_low < c_close_together then
        with deleted as (
            delete from rowq.message m
            where m.queue_id = p_queue_id
              and m.message_id between v_low and v_high
              and m.message_id = any (p_message_ids)
              and (m.xmax = 0 or p_are_locked)
            returning case
                when m.dedup_key is not null or m.group_key is not null or m.has_successors
                    then array[
                        m.dedup_key, m.group_key,
                        case when m.has_successors then m.message_id::text end
                    ]
            end as link
        )
        select array_agg(g.link order by g.link[1]) filter (where g.link is not null), count(*)
        into o_links, v_count
        from deleted g;
        if v_count = cardinality(p_message_ids) then
            return;
        end if;
    end if;

    for v_message_id in
        select u.message_id
        from unnest(p_message_ids) u (message_id)
        cross join lateral (
            -- offset 0 keeps this plan, a lookup per message, regardless of row estimates.
            select
            from rowq.message x
            where x.queue_id = p_queue_id
              and x.message_id = u.message_id
            offset 0
        ) m
    loop
        v_link := null;
        delete from rowq.message m
        where m.queue_id = p_queue_id
          and m.ctid = (
              select x.ctid
              from rowq.message x
              where x.queue_id = p_queue_id
                and x.message_id = v_message_id
              for update skip locked
          )
        returning case
            when m.dedup_key is not null or m.group_key is not null or m.has_successors
                then array[
                    m.dedup_key, m.group_key,
                    case when m.has_successors then m.message_id::text end
                ]
        end
        into v_link;
        if v_link is not null then
            o_links := o_links || array[v_link];
        elsif not found then
            o_held := o_held || v_message_id;
        end if;
    end loop;
end;
$$;

create or replace function rowq.internal_release_links(
    p_queue_id    integer,
    p_links       text[],
    p_message_ids bigint[],
    p_have_slots  boolean,
    p_have_ended  boolean default true
)
returns void
language plpgsql
as $$
-- purpose   Release the dedup keys, group slots and successors of ended or dead messages.
-- locks     dedup rows; as internal_release_group_slots and internal_resume_successors
declare
    v_link    text[];
    v_keys    text[];
    v_awaited bigint[];
begin
    foreach v_link slice 1 in array p_links loop
        if v_link[1] is not null then
            delete from rowq.dedup d
            where d.queue_id = p_queue_id
              and d.dedup_key = v_link[1]
              and d.message_id = any (p_message_ids);
        end if;
        if v_link[2] is not null then
            v_keys := v_keys || v_link[2];
        end if;
        if v_link[3] is not null then
            v_awaited := v_awaited || v_link[3]::bigint;
        end if;
    end loop;
    if p_have_slots and v_keys is not null then
        perform rowq.internal_release_group_slots(p_queue_id, v_keys);
    end if;
    if p_have_ended and v_awaited is not null then
        perform rowq.internal_resume_successors(
            p_queue_id, array(select u.message_id from unnest(v_awaited) u (message_id) order by 1)
        );
    end if;
end;
$$;

create or replace function rowq.internal_pop_claimed(
    p_queue_id        integer,
    p_claim_id        bigint,
    p_message_ids     bigint[],
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
-- purpose   Take messages out of a claim: those asked for that it still holds, or all.
-- locks     the claim row, before any other row
-- errors    RQ711 RQ721
declare
    v_kept_ids      bigint[];
    v_kept_lanes    smallint[];
    v_kept_attempts smallint[];
    v_kept_errors   text[];
    v_kept_cancels  bigint[];
begin
    if p_claim_id is null then
        raise exception 'RQ711 invalid_argument: claim_id is required'
            using errcode = 'RQ711';
    end if;
    if (cardinality(p_message_ids) <> 1 or p_message_ids[1] is null)
       and not rowq.internal_is_id_list(p_message_ids) then
        raise exception
            'RQ711 invalid_argument: message_ids must be a list of at most 10000 ids without nulls'
            using errcode = 'RQ711';
    end if;

    delete from rowq.claim c
    where c.queue_id = p_queue_id
      and c.claim_id = p_claim_id
      and (p_message_ids is null or c.message_ids <@ p_message_ids)
    returning c.message_ids, c.lanes, c.attempts, c.errors, c.cancel_ids, c.worker_name,
              c.leased_at
    into o_message_ids, o_lanes, o_attempts, o_errors, o_cancel_ids, o_worker_name, o_leased_at;
    if found then
        return;
    end if;

    select c.message_ids, c.lanes, c.attempts, c.errors, c.cancel_ids, c.worker_name, c.leased_at
    into v_kept_ids, v_kept_lanes, v_kept_attempts, v_kept_errors, v_kept_cancels,
         o_worker_name, o_leased_at
    from rowq.claim c
    where c.queue_id = p_queue_id
      and c.claim_id = p_claim_id
    for update;
    if not found and p_message_ids is null then
        raise exception 'RQ721 stale_claim: claim % no longer holds any messages', p_claim_id
            using errcode = 'RQ721';
    end if;

    select coalesce(array_agg(u.message_id) filter (where u.is_asked), '{}'),
           array_agg(u.lane) filter (where u.is_asked),
           array_agg(u.attempt) filter (where u.is_asked),
           array_agg(u.last_error) filter (where u.is_asked),
           array_agg(u.message_id) filter (where not u.is_asked),
           array_agg(u.lane) filter (where not u.is_asked),
           array_agg(u.attempt) filter (where not u.is_asked),
           array_agg(u.last_error) filter (where not u.is_asked)
    into o_message_ids, o_lanes, o_attempts, o_errors,
         v_kept_ids, v_kept_lanes, v_kept_attempts, v_kept_errors
    from (
        select x.message_id, x.lane, x.attempt, x.last_error,
               x.message_id = any (p_message_ids) as is_asked
        from unnest(v_kept_ids, v_kept_lanes, v_kept_attempts, v_kept_errors)
            x (message_id, lane, attempt, last_error)
    ) u;

    if v_kept_cancels is not null then
        select array_agg(u.message_id) filter (where u.message_id = any (o_message_ids)),
               array_agg(u.message_id) filter (where u.message_id <> all (o_message_ids))
        into o_cancel_ids, v_kept_cancels
        from unnest(v_kept_cancels) u (message_id);
    end if;

    if v_kept_ids is null then
        -- Another session finished the rest of the claim between the two statements above.
        delete from rowq.claim c
        where c.queue_id = p_queue_id
          and c.claim_id = p_claim_id;
    elsif o_message_ids <> '{}' then
        update rowq.claim c
        set message_ids = v_kept_ids,
            lanes       = v_kept_lanes,
            attempts    = v_kept_attempts,
            errors      = v_kept_errors,
            cancel_ids  = v_kept_cancels
        where c.queue_id = p_queue_id
          and c.claim_id = p_claim_id;
    end if;
end;
$$;

create or replace function rowq.internal_push_dead(
    p_queue_id    integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_errors      text[],
    p_have_slots boolean default true,
    inout p_most_looks integer default 10000
)
language plpgsql
as $$
-- purpose   Make messages dead with their last errors, and propagate the deaths to their successors.
-- locks     new dead and result rows; as internal_release_links and internal_propagate_deaths
declare
    c_most  constant integer := 1000;
    v_links text[];
    v_holds boolean;
    v_next  record;
    v_count integer := 0;
begin
    loop
        v_links := rowq.internal_read_links(p_queue_id, p_message_ids);
        v_holds := false;
        if v_links is not null and p_have_slots then
            select q.group_after_dead = 'hold' into v_holds
            from rowq.queue q
            where q.queue_id = p_queue_id;
        end if;

        insert into rowq.dead (queue_id, lane, attempt, message_id, died_at, last_error, holds_slot)
        select p_queue_id, u.lane, coalesce(u.attempt, 0), u.message_id, clock_timestamp(),
               left(u.last_error, 2000),
               case
                   when v_holds then (
                       select true
                       from rowq.message m
                       where m.queue_id = p_queue_id
                         and m.message_id = u.message_id
                         and m.group_key is not null
                   )
               end
        from unnest(p_lanes, p_message_ids, p_attempts, p_errors)
            u (lane, message_id, attempt, last_error);

        if v_links is not null then
            perform rowq.internal_release_links(
                p_queue_id, v_links, p_message_ids, p_have_slots and not v_holds, false
            );
        end if;
        perform rowq.internal_push_result(p_queue_id, p_message_ids, 'dead', p_errors);

        -- Limit the transaction: maintain continues a long tree of deaths.
        v_count := v_count + cardinality(p_message_ids);
        if not p_have_slots and v_count > c_most then
            perform rowq.internal_defer(p_queue_id, null, p_message_ids, true);
            return;
        end if;
        v_next := rowq.internal_propagate_deaths(p_queue_id, p_message_ids, p_most_looks);
        p_most_looks := v_next.p_max_checks;
        exit when v_next.o_failed_ids is null;
        p_message_ids := v_next.o_failed_ids;
        p_lanes := v_next.o_failed_lanes;
        p_attempts := null;
        p_errors := v_next.o_failed_errors;
        p_have_slots := false;
    end loop;
end;
$$;

create or replace function rowq.internal_lock_dead(
    p_queue_name       text,
    p_message_ids      bigint[],
    p_max_messages     integer,
    p_message_type     text,
    p_died_before      timestamp with time zone,
    out o_queue_id     integer,
    out o_message_ids  bigint[],
    out o_without_slot bigint[]
)
language plpgsql
as $$
-- purpose   Check the arguments of reset and discard_dead, and lock the dead messages they select.
-- locks     dead rows, skipping locked ones
-- errors    RQ711
begin
    if not rowq.internal_is_id_list(p_message_ids) then
        raise exception
            'RQ711 invalid_argument: message_ids must be a list of at most 10000 ids without nulls'
            using errcode = 'RQ711';
    end if;
    if p_max_messages is null or p_max_messages not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 10000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    if p_message_ids is not null and num_nonnulls(p_message_type, p_died_before) > 0 then
        raise exception 'RQ711 invalid_argument: '
            'message_ids is mutually exclusive with message_type and died_before'
            using errcode = 'RQ711';
    end if;
    o_queue_id := (rowq.internal_require_queue(p_queue_name)).queue_id;

    select array_agg(h.message_id), array_agg(h.message_id) filter (where h.is_outside)
    into o_message_ids, o_without_slot
    from (
        select d.message_id, d.holds_slot is null as is_outside
        from rowq.dead d
        where d.queue_id = o_queue_id
          and (p_message_ids is null or d.message_id = any (p_message_ids))
          and (p_died_before is null or d.died_at < p_died_before)
          and (p_message_type is null or p_message_type = (
              -- A scalar subquery is a lookup by key per dead message, regardless of row estimates.
              select m.message_type
              from rowq.message m
              where m.queue_id = d.queue_id
                and m.message_id = d.message_id
          ))
        order by d.queue_id, d.message_id
        limit case when p_message_ids is null then p_max_messages else 10000 end
        for update skip locked
    ) h;
end;
$$;

create or replace function rowq.internal_reap(
    p_queue_id     integer,
    p_max_attempts integer,
    p_history_days integer,
    p_limit        integer,
    out o_reaped   integer,
    out o_died     integer
)
language plpgsql
as $$
-- purpose   Return the messages of expired claims to the front of their lanes, until p_limit is reached.
-- locks     expired claim rows, skipping locked ones; for cancelled messages as internal_finish;
--           new history rows
declare
    v_from       constant bigint := rowq.internal_read_floor(p_queue_id, -1::smallint /* claim */);
    -- A cursor locks a claim when it fetches it; a loop over a query would lock some ahead.
    v_expired cursor for
        select c.claim_id, c.message_ids, c.lanes, c.attempts, c.worker_name, c.leased_at,
               c.cancel_ids
        from rowq.claim c
        where c.queue_id = p_queue_id
          and c.claim_id >= v_from
          and c.lease_until <= clock_timestamp()
        order by c.queue_id, c.claim_id
        for update skip locked;
    v_claim      record;
    v_rest       record;
    v_ended      integer := 0;
    v_lanes      smallint[];
    v_ids        bigint[];
    v_attempts   smallint[];
    v_dead_lanes smallint[];
    v_dead_ids   bigint[];
    v_dead_tries smallint[];
    v_error      text;
    v_left       integer;
begin
    o_reaped := 0;
    o_died := 0;
    -- Skip a claim whose heartbeat or finish came first: its lease is longer, or its row is locked
    -- or gone.
    open v_expired;
    while o_reaped + o_died + v_ended < p_limit loop
        fetch v_expired into v_claim;
        exit when not found;

        v_left := p_limit - o_reaped - o_died - v_ended;
        if cardinality(v_claim.message_ids) <= v_left then
            delete from rowq.claim c
            where c.queue_id = p_queue_id
              and c.claim_id = v_claim.claim_id;
        else
            -- The messages beyond the limit stay in the claim, still expired.
            update rowq.claim c
            set message_ids = c.message_ids[v_left + 1:],
                lanes       = c.lanes[v_left + 1:],
                attempts    = c.attempts[v_left + 1:],
                errors      = c.errors[v_left + 1:],
                cancel_ids  = (
                    select array_agg(u.message_id)
                    from unnest(c.cancel_ids) u (message_id)
                    where u.message_id = any (c.message_ids[v_left + 1:])
                )
            where c.queue_id = p_queue_id
              and c.claim_id = v_claim.claim_id;
            v_claim.message_ids := v_claim.message_ids[:v_left];
            v_claim.lanes := v_claim.lanes[:v_left];
            v_claim.attempts := v_claim.attempts[:v_left];
        end if;

        if v_claim.cancel_ids && v_claim.message_ids then
            v_rest := rowq.internal_end_cancelled(
                p_queue_id, v_claim.message_ids, v_claim.lanes, v_claim.attempts, null,
                v_claim.cancel_ids, v_claim.claim_id, v_claim.worker_name, v_claim.leased_at
            );
            v_claim.message_ids := v_rest.o_message_ids;
            v_claim.lanes := v_rest.o_lanes;
            v_claim.attempts := v_rest.o_attempts;
            v_ended := v_ended + cardinality(v_rest.o_cancel_ids);
        end if;
        select array_agg((u.lane / 2 * 2)::smallint) filter (where u.attempt < u.allowed),
               array_agg(u.message_id) filter (where u.attempt < u.allowed),
               array_agg(u.attempt) filter (where u.attempt < u.allowed),
               array_agg(u.lane) filter (where u.attempt >= u.allowed),
               array_agg(u.message_id) filter (where u.attempt >= u.allowed),
               array_agg(u.attempt) filter (where u.attempt >= u.allowed)
        into v_lanes, v_ids, v_attempts, v_dead_lanes, v_dead_ids, v_dead_tries
        from rowq.internal_with_max_attempts(
            p_queue_id, v_claim.message_ids, v_claim.lanes, v_claim.attempts, p_max_attempts
        ) u;

        v_error := 'lease expired' || coalesce(': ' || v_claim.worker_name, '');
        if p_history_days > 0 then
            perform rowq.internal_push_history(
                p_queue_id, v_claim.claim_id, v_claim.worker_name, v_claim.leased_at,
                v_claim.message_ids, v_claim.attempts, 'lease_expired', v_error
            );
        end if;
        if v_ids is not null then
            perform rowq.internal_push_ready(
                p_queue_id, v_lanes, v_ids, v_attempts,
                array_fill(v_error, array[cardinality(v_ids)])
            );
            o_reaped := o_reaped + cardinality(v_ids);
        end if;
        if v_dead_ids is not null then
            perform rowq.internal_push_dead(
                p_queue_id, v_dead_lanes, v_dead_ids, v_dead_tries,
                array_fill(v_error, array[cardinality(v_dead_ids)])
            );
            o_died := o_died + cardinality(v_dead_ids);
        end if;
    end loop;
    close v_expired;
end;
$$;
