create or replace function rowq.maintain(
    p_queue_name text default null,
    p_batch_size integer default 1000
)
returns table (
    queue_name         text,
    elected            boolean,
    promoted           integer,
    reaped             integer,
    died               integer,
    archived           integer,
    purged             integer,
    partitions_dropped integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   maintain
-- version   1
-- purpose   All housekeeping of one queue, or of every queue: promote, reap, floors, archive. Call it about once a second.
-- promise   P09 P11 P13 P14 P19
-- locks     advisory lock of each queue, tried, until the caller's transaction ends
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   with more than 1000 queues, a call without a name takes 1000 of them at random
#variable_conflict use_column
declare
    v_queue     rowq.queue;
    v_frontiers bigint[];
begin
    perform rowq.internal_check_batch_size(p_batch_size);

    -- What has been given out so far, read before this transaction has an id of its own: who holds
    -- one of these numbers has an older id. With an id already, no new marks are taken.
    if pg_current_xact_id_if_assigned() is null then
        v_frontiers := array[
            rowq.internal_floor_frontier(0::smallint),
            rowq.internal_floor_frontier(-1::smallint),
            rowq.internal_floor_frontier(-2::smallint)
        ];
    end if;

    if p_queue_name is not null then
        v_queue := rowq.internal_require_queue(p_queue_name);
        return query
        select p_queue_name, m.o_elected, m.o_promoted, m.o_reaped, m.o_died, m.o_archived,
               m.o_purged, m.o_partitions_dropped
        from rowq.internal_maintain(v_queue, p_batch_size, v_frontiers) m;
        return;
    end if;

    return query
    select (q.settings).queue_name, m.o_elected, m.o_promoted, m.o_reaped, m.o_died, m.o_archived,
           m.o_purged, m.o_partitions_dropped
    from (
        select x as settings
        from rowq.queue x
        order by random()
        limit 1000
    ) q
    cross join lateral rowq.internal_maintain(q.settings, p_batch_size, v_frontiers) m;
end;
$$;
