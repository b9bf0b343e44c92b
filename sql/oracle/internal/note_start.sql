procedure internal_note_start(
    p_part_id    in number,
    p_claim_id   in number,
    p_started_at in timestamp,
    p_messages   in number
)
is
-- routine   internal_note_start
-- purpose   Note the deliveries that a claim has begun, where the queue has a rate_limit.
-- promise   P29
-- locks     the new started row
begin
    insert into rowq_started (part_id, started_at, claim_id, messages)
    select p_part_id, p_started_at, p_claim_id, p_messages
    from rowq_queue q
    where q.part_id = p_part_id
      and q.rate_limit > 0;
end internal_note_start;
