create or replace function rowq.internal_poll(
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
-- routine   internal_poll
-- version   1
-- purpose   One look of dequeue_wait: messages as a JSON array, else the pause before the next.
-- promise   P03 P05
-- locks     as dequeue_fast
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   only where the caller's path reaches into dequeue_wait
declare
    -- A JSON array holds less than 256 MB, and a text grows on its way to the client.
    c_most_octets constant bigint := 67108864;
    v_claim_id    bigint;
    v_rest        bigint[];
begin
    select jsonb_agg(
               jsonb_build_object(
                   'claim_id', t.claim_id, 'message_id', t.message_id, 'attempt', t.attempt,
                   'message_type', t.message_type, 'headers', t.headers, 'body', t.body,
                   'body_binary', translate(encode(t.body_binary, 'base64'), E'\n', ''),
                   'enqueued_at', t.enqueued_at, 'lease_until', t.lease_until,
                   'last_error', t.last_error
               )
           ) filter (where t.octets <= c_most_octets or t.place = 1),
           min(t.claim_id),
           array_agg(t.message_id) filter (where t.octets > c_most_octets and t.place > 1)
    into o_messages, v_claim_id, v_rest
    from (
        select d.claim_id, d.message_id, d.attempt, d.message_type, d.headers, d.body,
               d.body_binary, d.enqueued_at, d.lease_until, d.last_error,
               row_number() over w as place,
               sum(
                   octet_length(coalesce(d.body, '')) + octet_length(coalesce(d.body_binary, ''))
                   + octet_length(coalesce(d.headers::text, ''))
                   + octet_length(coalesce(d.message_type, ''))
                   + octet_length(coalesce(d.last_error, ''))
               ) over w as octets
        from rowq.dequeue_fast(p_queue_name, p_batch_size, p_worker_name, p_lease_seconds) d
        window w as (rows unbounded preceding)
    ) t;
    if v_rest is not null then
        perform rowq.release(p_queue_name, v_claim_id, v_rest);
    end if;

    if o_messages is null and clock_timestamp() < p_until then
        o_pause := least(p_pause * 2, 0.25, extract(epoch from p_until - clock_timestamp()));
    end if;
end;
$$;
