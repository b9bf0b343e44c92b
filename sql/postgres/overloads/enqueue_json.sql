create or replace function rowq.enqueue(
    p_queue_name          text,
    p_body                json,
    p_body_binary         bytea default null,
    p_message_type        text default null,
    p_headers             jsonb default null,
    p_priority            integer default 5,
    p_delay_seconds       double precision default null,
    p_run_at              timestamp with time zone default null,
    p_dedup_key           text default null,
    p_max_attempts        integer default null,
    p_group_key           text default null,
    p_predecessor_ids     bigint[] default null,
    p_on_predecessor_dead text default null,
    p_expire_seconds      double precision default null,
    p_producer_name       text default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   enqueue
-- version   1
-- purpose   Enqueue a message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     as enqueue with a text body, which it calls
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   PostgreSQL only: the body is json; its text is stored
begin
    return query
    select e.message_id, e.outcome
    from rowq.enqueue(
        p_queue_name, p_body::text, p_body_binary, p_message_type, p_headers, p_priority,
        p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
        p_on_predecessor_dead, p_expire_seconds, p_producer_name
    ) e;
end;
$$;
