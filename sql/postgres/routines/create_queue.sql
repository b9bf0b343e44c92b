create or replace function rowq.create_queue(
    p_queue_name           text,
    p_lease_seconds        integer default null,
    p_max_attempts         integer default null,
    p_backoff_base_seconds double precision default null,
    p_backoff_factor       double precision default null,
    p_backoff_cap_seconds  double precision default null,
    p_backoff_jitter       double precision default null,
    p_archive_days         integer default null,
    p_max_body_length      integer default null
)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   create_queue
-- version   1
-- purpose   Create a queue; an existing queue of that name is left as it is.
-- promise   P15
-- locks     the new queue row
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
#variable_conflict use_column
begin
    perform rowq.internal_check_settings(
        p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
        p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
        p_max_body_length
    );

    insert into rowq.queue (
        queue_name, lease_seconds, max_attempts, backoff_base_seconds,
        backoff_factor, backoff_cap_seconds, backoff_jitter, archive_days, max_body_length
    )
    select
        p_queue_name, coalesce(p_lease_seconds, 30), coalesce(p_max_attempts, 10),
        coalesce(p_backoff_base_seconds, 5), coalesce(p_backoff_factor, 2),
        coalesce(p_backoff_cap_seconds, 3600), coalesce(p_backoff_jitter, 0.2),
        coalesce(p_archive_days, 0), coalesce(p_max_body_length, 1048576)
    -- Look first, because an insert that ends in a conflict uses up a number.
    where not exists (select 1 from rowq.queue q where q.queue_name = p_queue_name)
    on conflict (queue_name) do nothing;

    return query select p_queue_name, case when found then 'created' else 'exists' end;
end;
$$;
