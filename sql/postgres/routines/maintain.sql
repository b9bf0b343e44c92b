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
    partitions_dropped integer,
    expired            integer
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
-- purpose   Run the maintenance of one queue or all; call it about once a second.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P34 P36 P37 P49
-- locks     advisory lock of each queue, tried, until the caller's transaction ends
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   with more than 1000 queues, a call without a name maintains 1000 at random; an error in
--           one of its queues is a warning, and kept for health
#variable_conflict use_column
declare
    v_ids          integer[];
    v_queues       rowq.queue[];
    v_queue        rowq.queue;
    v_pending_seqs bigint[];
    -- Tables whose lock was not free within 1 s: later queues leave them to the next call.
    v_locked     text[] := '{}'::text[];
    v_maintained integer[] := '{}'::integer[];
    v_busy       integer[];
    v_resting    integer[];
    v_failed     integer[];
    v_done       record;
    v_sweep_interval interval;
    -- More than one batch of results and history runs only until then, for all queues: promoted and
    -- reaped messages wait for the end of this transaction.
    v_until      constant timestamp with time zone :=
        clock_timestamp() + interval '100 milliseconds';
begin
    perform rowq.internal_check_batch_size(p_batch_size);

    -- Read the newest numbers before this transaction has an id, so that every transaction with one
    -- of these numbers has an older id. If it already has an id, set no new pending start.
    if pg_current_xact_id_if_assigned() is null then
        v_pending_seqs := array[
            rowq.internal_newest_number(0::smallint),
            rowq.internal_newest_number(-1::smallint /* claim */),
            rowq.internal_newest_number(-2::smallint /* delayed */)
        ];
    end if;

    if p_queue_name is not null then
        v_queues := array[rowq.internal_require_queue(p_queue_name)];
        v_ids := array[v_queues[1].queue_id];
    else
        v_ids := array(select q.queue_id from rowq.queue q order by random() limit 1000);
    end if;
    select b.o_busy, b.o_resting into v_busy, v_resting
    from rowq.internal_busy_queues(v_ids) b;

    -- A sweep is not urgent: make a few per call, so that many due ones cause no spike.
    v_resting := array(
        select r.queue_id
        from unnest(v_resting) r (queue_id)
        order by random()
        limit 20
    );
    v_failed := array(
        select substr(m.name, 16)::integer
        from rowq.meta m
        where m.name like 'maintain\_fault.%'
    );
    -- A queue that failed is maintained even if it looks idle, so that its error is deleted.
    v_busy := v_busy || v_resting || array(
        select f.queue_id
        from unnest(v_failed) f (queue_id)
        where f.queue_id = any (v_ids)
    );

    if p_queue_name is null then
        -- One statement returns all idle queues, so that many of them cost little. The array is
        -- evaluated once, and only if another session has a lock.
        return query
        select q.queue_name,
               pg_try_advisory_xact_lock(1919907697, q.queue_id)
               or q.queue_id <> all (array(
                   select unnest(rowq.internal_maintained_queues(1919907697))
               )),
               0, 0, 0, 0, 0, 0, 0
        from rowq.queue q
        where q.queue_id = any (v_ids)
          and q.queue_id <> all (v_busy);
        v_queues := array(
            select q
            from rowq.queue q
            where q.queue_id = any (v_busy)
            order by random()
        );
    end if;

    foreach v_queue in array v_queues loop
        v_sweep_interval := case
            when v_queue.queue_id = any (v_resting) then interval '10 minutes'
            else interval '1 minute'
        end;
        if p_queue_name is not null then
            v_done := rowq.internal_maintain_queue(
                v_queue, v_busy = '{}', p_batch_size, v_until, v_pending_seqs, v_locked,
                v_maintained, v_sweep_interval
            );
        else
            -- A failed queue does not stop the others.
            begin
                v_done := rowq.internal_maintain_queue(
                    v_queue, false, p_batch_size, v_until, v_pending_seqs, v_locked, v_maintained,
                    v_sweep_interval
                );
            exception
                when others then
                    raise warning 'rowq: maintain of queue % failed: % %',
                        v_queue.queue_name, sqlstate, sqlerrm;
                    perform rowq.internal_record_maintain_error(
                        v_queue.queue_id, format('%s %s', sqlstate, sqlerrm)
                    );
                    return query select v_queue.queue_name, true, 0, 0, 0, 0, 0, 0, 0;
                    continue;
            end;
        end if;
        if v_done.o_elected and v_queue.queue_id = any (v_failed) then
            perform rowq.internal_record_maintain_error(v_queue.queue_id, null);
        end if;
        v_locked := v_done.o_locked;
        v_maintained := v_done.o_maintained;
        return query
        select v_queue.queue_name, v_done.o_elected, v_done.o_promoted, v_done.o_reaped,
               v_done.o_died, v_done.o_archived, v_done.o_purged, v_done.o_partitions_dropped,
               v_done.o_expired;
    end loop;
end;
$$;
