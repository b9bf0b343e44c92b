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
-- purpose   As dequeue_fast, but wait until something is ready or the time is up.
-- promise   P03 P17
-- locks     as dequeue_fast; none while waiting
-- commits   after each look, so that no snapshot is held while it waits; needs autocommit
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array; caller's rights, as only such a procedure may commit
declare
    v_until timestamp with time zone;
    v_pause double precision := 0.02;
begin
    if p_wait_seconds is null or p_wait_seconds not between 0 and 3600 then
        raise exception 'RQ711 invalid_argument: wait_seconds must be between 0 and 3600, got %',
            p_wait_seconds
            using errcode = 'RQ711';
    end if;
    call rowq.internal_require_autocommit();
    v_until := pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => p_wait_seconds);

    loop
        select pg_catalog.jsonb_agg(
            pg_catalog.jsonb_build_object(
                'claim_id', d.claim_id, 'message_id', d.message_id, 'attempt', d.attempt,
                'message_type', d.message_type, 'headers', d.headers, 'body', d.body,
                'body_binary', pg_catalog.translate(
                    pg_catalog.encode(d.body_binary, 'base64'), E'\n', ''
                ),
                'enqueued_at', d.enqueued_at, 'lease_until', d.lease_until,
                'last_error', d.last_error
            )
        )
        into p_messages
        from rowq.dequeue_fast(p_queue_name, p_batch_size, p_worker_name, p_lease_seconds) d;
        commit;

        exit when p_messages is not null or pg_catalog.clock_timestamp() >= v_until;
        perform pg_catalog.pg_sleep(
            least(v_pause, extract(epoch from v_until - pg_catalog.clock_timestamp()))
        );
        v_pause := least(v_pause * 2, 0.25);
    end loop;
end;
$$;
