procedure look(
    p_queue_name     in varchar2,
    p_batch_size     in number,
    p_worker_name    in varchar2,
    p_lease_seconds  in number,
    p_listened_until in timestamp,
    p_part_id        out number,
    p_claim_id       out number,
    p_lease_until    out timestamp
)
is
-- routine   look
-- version   1
-- purpose   One look of dequeue_wait: what dequeue_fast takes, as far as it fits one answer; a null claim when there is none.
-- promise   P02 P03 P05
-- locks     as dequeue_fast; of a session that listens the queue row, passed over when locked
-- commits   never; the caller commits at once
-- errors    RQ701 RQ711 RQ713
-- differs   this engine's own: public, so that package rowq_wait can call it
begin
    internal_dequeue(
        p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, p_part_id, p_claim_id,
        p_lease_until
    );
    if p_claim_id is not null then
        internal_trim_claim(p_part_id, p_claim_id);
        if p_listened_until is not null then
            internal_note_listener(p_part_id, null);
        end if;
    end if;
end look;
