procedure internal_dequeue(
    p_queue_name    in varchar2,
    p_batch_size    in number,
    p_worker_name   in varchar2,
    p_lease_seconds in number,
    p_part_id       out number,
    p_claim_id      out number,
    p_lease_until   out timestamp
)
is
-- routine   internal_dequeue
-- purpose   Lease up to p_batch_size ready messages to one new claim; a null claim when there is none.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     ready rows, passing over locked ones; the new claim row; of a limited queue the gate
-- errors    RQ701 RQ711 RQ713
-- differs   two routines share it; an empty look takes no lock and begins no transaction
    v_queue       t_queue;
    v_lanes       t_lanes;
    v_has_recheck boolean;
    v_messages    t_messages;
    v_found       pls_integer;
    v_batch_size  number := p_batch_size;
    v_is_limited  boolean;
    v_now         timestamp(6);
begin
    p_claim_id := null;
    p_lease_until := null;
    internal_check_whole('batch_size', p_batch_size, 1, 1000, p_is_required => true);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    if length(p_worker_name) > 200 then
        internal_refuse('worker_name is longer than 200 characters');
    end if;
    internal_require_lanes(p_queue_name, v_queue, v_lanes, v_has_recheck);
    p_part_id := v_queue.part_id;

    if v_queue.paused_at is not null then
        return;
    end if;
    v_is_limited := v_queue.max_leased + v_queue.rate_limit > 0;
    if v_is_limited then
        v_batch_size := internal_admit(v_queue.part_id, p_batch_size);
        if v_batch_size = 0 then
            return;
        end if;
    end if;

    internal_pop_ready(v_queue.part_id, v_lanes, v_batch_size, v_messages);
    -- Nothing is ready, so promote what is due by now: it need not wait for the next maintain, nor
    -- need a group whose token was left.
    if v_messages.count = 0 then
        v_found := internal_promote(v_queue.part_id, v_batch_size);
        if v_found = 0 and v_has_recheck then
            v_found := internal_recheck_groups(v_queue.part_id, 10);
        end if;
        if v_found > 0 then
            v_lanes := internal_open_lanes_of(v_queue.part_id);
            internal_pop_ready(v_queue.part_id, v_lanes, v_batch_size, v_messages);
        end if;
    end if;
    if v_messages.count = 0 then
        return;
    end if;

    v_now := sys_extract_utc(systimestamp);
    p_lease_until := v_now
        + numtodsinterval(coalesce(p_lease_seconds, v_queue.lease_seconds), 'second');
    insert into rowq_claim (part_id, claim_id, leased_at, lease_until, worker_name)
    values (v_queue.part_id, rowq_claim_seq.nextval, v_now, p_lease_until, p_worker_name)
    returning claim_id into p_claim_id;
    forall i in 1 .. v_messages.count
        insert into rowq_leased (part_id, claim_id, place, message_id, lane, attempt)
        values (
            v_queue.part_id, p_claim_id, v_messages(i).seq, v_messages(i).message_id,
            v_messages(i).lane, v_messages(i).attempt
        );
    if v_is_limited then
        internal_note_start(v_queue.part_id, p_claim_id, v_now, v_messages.count);
    end if;
end internal_dequeue;
