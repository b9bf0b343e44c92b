create or replace procedure rowq.dequeue_wait(
    p_queue_name     text,
    p_batch_size     integer default 1,
    p_worker_name    text default null,
    p_lease_seconds  integer default null,
    p_wait_seconds   double precision default 20,
    inout p_messages jsonb default null
)
language plpgsql
as $$
-- routine   dequeue_wait
-- version   1
-- purpose   Dequeue like dequeue_fast, but wait until a message is ready or the time is up.
-- promise   P03 P17
-- locks     as dequeue_fast; none while waiting
-- commits   after each poll, so that no snapshot is held while it waits; needs autocommit
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array; invoker's rights, because only such a procedure may commit
declare
    v_until timestamp with time zone;
    v_pause double precision := 0.01;
begin
    -- This procedure runs with the caller's search_path, so every name is qualified and no operator
    -- is used.
    v_until := rowq.internal_wait_until(p_wait_seconds);
    call rowq.internal_require_autocommit('dequeue_wait');

    loop
        select l.o_messages, l.o_pause
        into p_messages, v_pause
        from rowq.internal_poll(
            p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, v_until, v_pause
        ) l;
        commit;

        exit when v_pause is null;
        perform pg_catalog.pg_sleep(v_pause);
    end loop;
end;
$$;
