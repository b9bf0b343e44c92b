procedure dequeue_fast(
    p_queue_name    in varchar2,
    p_batch_size    in number default 1,
    p_worker_name   in varchar2 default null,
    p_lease_seconds in number default null,
    p_rows          out sys_refcursor
)
is
-- routine   dequeue_fast
-- version   1
-- purpose   Lease up to batch_size ready messages under one new claim, and skip locked rows.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     ready rows, skipping locked ones; the new claim row; the limit lock, if the queue has
--           limits: waits up to 100 ms, holds it until the caller's transaction ends
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ713
-- differs   nothing
    v_queue_id      rowq_queue.queue_id%type;
    v_claim_id      rowq_claim.claim_id%type;
    v_lease_until   rowq_claim.lease_until%type;
    v_has_savepoint boolean;
begin
    internal_begin_work(v_has_savepoint);
    internal_dequeue(
        p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, v_queue_id, v_claim_id,
        v_lease_until
    );

    open p_rows for
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               l.claim_id, l.message_id, l.attempt, m.message_type, m.headers, m.body,
               m.body_binary, m.enqueued_at, v_lease_until as lease_until, m.last_error
        from rowq_leased l
        join rowq_message m
          on m.queue_id = l.queue_id
         and m.message_id = l.message_id
        where l.queue_id = v_queue_id
          and l.claim_id = v_claim_id
        order by l.queue_id, l.claim_id, l.place;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end dequeue_fast;
