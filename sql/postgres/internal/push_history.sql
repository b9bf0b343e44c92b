create or replace function rowq.internal_push_history(
    p_part_id     integer,
    p_claim_id    bigint,
    p_worker_name text,
    p_leased_at   timestamp with time zone,
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_outcome     text,
    p_error       text default null,
    p_dead_ids    bigint[] default null
)
returns void
language plpgsql
as $$
-- routine   internal_push_history
-- purpose   Keep how attempts have ended, all in one way, but that the messages in p_dead_ids are dead.
-- promise   P37
-- locks     new history rows
declare
    c_ended_at constant timestamp with time zone := clock_timestamp();
begin
    insert into rowq.history (
        part_id, attempt, message_id, claim_id, leased_at, ended_at, outcome, worker_name, error
    )
    select p_part_id, u.attempt, u.message_id, p_claim_id, p_leased_at, c_ended_at,
           case when u.message_id = any (p_dead_ids) then 'dead' else p_outcome end,
           p_worker_name, left(p_error, 2000)
    from unnest(p_message_ids, p_attempts) u (message_id, attempt);
end;
$$;
