-- History: attempts that have ended.
--
-- If a queue has history_days, each call that ends attempts adds a row per attempt to history in
-- the same transaction, one insert per outcome. maintain and purge_archive delete by key in the
-- order of ended_at, from a floor. There are no partitions: dropping one would lock the table that
-- every finishing call inserts into.
--
--   complete, retry_later, fail_now, ... -> push_history
--   purge_archive, maintain_queue -> purge_history
--
-- Writes history. Only reads floor.

create or replace function rowq.internal_push_history(
    p_queue_id    integer,
    p_claim_id    bigint,
    p_worker_name text,
    p_leased_at   timestamp with time zone,
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_outcome     text,
    p_error       text default null,
    p_dead_ids    bigint[] default null
)
returns void
language plpgsql
as $$
-- purpose   Record ended attempts with one outcome; messages in p_dead_ids are dead.
-- locks     new history rows
declare
    c_ended_at constant timestamp with time zone := clock_timestamp();
begin
    insert into rowq.history (
        queue_id, attempt, message_id, claim_id, leased_at, ended_at, outcome, worker_name, error
    )
    select p_queue_id, u.attempt, u.message_id, p_claim_id, p_leased_at, c_ended_at,
           case when u.message_id = any (p_dead_ids) then 'dead' else p_outcome end,
           p_worker_name, left(p_error, 2000)
    from unnest(p_message_ids, p_attempts) u (message_id, attempt);
end;
$$;

create or replace function rowq.internal_purge_history(
    p_queue_id    integer,
    p_days        integer,
    p_limit       integer,
    p_until       timestamp with time zone default null,
    p_pending_seq bigint default null,
    p_pending_xid xid8 default null
)
returns integer
language plpgsql
set lock_timeout = '1s'
as $$
-- purpose   Delete up to p_limit expired attempts; until p_until, up to ten times as many.
-- locks     history rows, skipping locked ones; the table, waits up to 1 s
declare
    v_before constant timestamp with time zone :=
        clock_timestamp() - make_interval(days => p_days);
    v_from   timestamp with time zone;
    v_row    record;
    v_purged integer := 0;
begin
    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_queue_id, -8::smallint /* history */)
    );
    -- Delete row by row: the planner may make "= any" a filter over all rows.
    for v_row in
        select h.ended_at, h.message_id, h.claim_id
        from rowq.history h
        where h.queue_id = p_queue_id
          and h.ended_at >= v_from
          and h.ended_at < v_before
        order by h.queue_id, h.ended_at, h.message_id, h.claim_id
        limit p_limit * case when p_until is null then 1 else 10 end
        for update skip locked
    loop
        delete from rowq.history h
        where h.queue_id = p_queue_id
          and h.ended_at = v_row.ended_at
          and h.message_id = v_row.message_id
          and h.claim_id = v_row.claim_id;
        v_purged := v_purged + 1;
        exit when v_purged >= p_limit and clock_timestamp() > p_until;
    end loop;

    if v_purged = 0 and p_days = 0 then
        -- A queue that never kept a history needs no floor.
        perform 1
        from rowq.floor f
        where f.queue_id = p_queue_id
          and f.lane = -8 /* history */
        limit 1;
        if not found then
            return 0;
        end if;
    end if;
    perform rowq.internal_move_floor(
        p_queue_id, -8::smallint /* history */, v_purged > 0, true, p_pending_seq, p_pending_xid
    );
    return v_purged;
end;
$$;
