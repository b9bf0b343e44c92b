create or replace function rowq.internal_push_dead(
    p_part_id     integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_error       text
)
returns void
language plpgsql
as $$
-- routine   internal_push_dead
-- version   1
-- purpose   Keep messages as dead with the last error; their dedup keys are free again.
-- promise   P10 P12
-- locks     new dead rows; dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
begin
    insert into rowq.dead (part_id, lane, attempt, message_id, died_at, last_error)
    select p_part_id, u.lane, u.attempt, u.message_id, clock_timestamp(), left(p_error, 2000)
    from unnest(p_lanes, p_message_ids, p_attempts) u (lane, message_id, attempt);

    perform rowq.internal_release_dedup_keys(p_part_id, p_message_ids);
end;
$$;
