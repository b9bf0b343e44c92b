create or replace function rowq.internal_look(
    p_queue_name    text,
    p_batch_size    integer,
    p_worker_name   text,
    p_lease_seconds integer,
    p_until         timestamp with time zone,
    p_pause         double precision,
    out o_messages  jsonb,
    out o_pause     double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   internal_look
-- version   1
-- purpose   One look of dequeue_wait: messages as a JSON array, else the pause before the next look.
-- promise   P03
-- locks     as dequeue_fast
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   only where the caller's path reaches into dequeue_wait
begin
    select jsonb_agg(
        jsonb_build_object(
            'claim_id', d.claim_id, 'message_id', d.message_id, 'attempt', d.attempt,
            'message_type', d.message_type, 'headers', d.headers, 'body', d.body,
            'body_binary', translate(encode(d.body_binary, 'base64'), E'\n', ''),
            'enqueued_at', d.enqueued_at, 'lease_until', d.lease_until,
            'last_error', d.last_error
        )
    )
    into o_messages
    from rowq.dequeue_fast(p_queue_name, p_batch_size, p_worker_name, p_lease_seconds) d;

    if o_messages is null and clock_timestamp() < p_until then
        o_pause := least(p_pause * 2, 0.25, extract(epoch from p_until - clock_timestamp()));
    end if;
end;
$$;
