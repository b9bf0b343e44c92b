create or replace function rowq.internal_note_start(
    p_part_id    integer,
    p_claim_id   bigint,
    p_started_at timestamp with time zone,
    p_messages   integer
)
returns void
language plpgsql
as $$
-- routine   internal_note_start
-- purpose   Note the deliveries that a claim has begun, in a queue with a rate_limit.
-- promise   P29
-- locks     the new started row
begin
    insert into rowq.started (part_id, messages, started_at, claim_id)
    values (p_part_id, p_messages, p_started_at, p_claim_id);
end;
$$;
