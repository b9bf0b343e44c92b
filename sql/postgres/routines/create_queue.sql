create or replace function rowq.create_queue(
    p_queue_name           text,
    p_lease_seconds        integer default null,
    p_max_attempts         integer default null,
    p_backoff_base_seconds double precision default null,
    p_backoff_factor       double precision default null,
    p_backoff_cap_seconds  double precision default null,
    p_backoff_jitter       double precision default null,
    p_archive_days         integer default null,
    p_max_body_length      integer default null,
    p_group_limit          integer default null,
    p_group_after_dead     text default null,
    p_group_pause_seconds  double precision default null,
    p_max_leased           integer default null,
    p_rate_limit           integer default null,
    p_rate_seconds         double precision default null,
    p_result_seconds       double precision default null,
    p_history_days         integer default null
)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   create_queue
-- version   1
-- purpose   Create a queue; leave an existing queue unchanged.
-- promise   P15
-- locks     the new rows of queue and limit_lock
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue_id integer;
begin
    perform rowq.internal_check_settings(
        p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
        p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
        p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
        p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds, p_history_days
    );

    insert into rowq.queue (
        queue_name, lease_seconds, max_attempts, backoff_base_seconds,
        backoff_factor, backoff_cap_seconds, backoff_jitter, archive_days, max_body_length,
        group_limit, group_after_dead, group_pause_seconds,
        max_leased, rate_limit, rate_seconds, result_seconds, history_days
    )
    select
        p_queue_name, coalesce(p_lease_seconds, 30), coalesce(p_max_attempts, 10),
        coalesce(p_backoff_base_seconds, 5), coalesce(p_backoff_factor, 2),
        coalesce(p_backoff_cap_seconds, 3600), coalesce(p_backoff_jitter, 0.2),
        coalesce(p_archive_days, 0), coalesce(p_max_body_length, 1048576),
        coalesce(p_group_limit, 1), coalesce(p_group_after_dead, 'continue'),
        coalesce(p_group_pause_seconds, 0),
        coalesce(p_max_leased, 0), coalesce(p_rate_limit, 0), coalesce(p_rate_seconds, 1),
        coalesce(p_result_seconds, 0), coalesce(p_history_days, 0)
    -- Check first: an insert that conflicts uses up an id.
    where not exists (select 1 from rowq.queue q where q.queue_name = p_queue_name)
    on conflict (queue_name) do nothing
    returning queue_id into v_queue_id;
    if v_queue_id is not null then
        insert into rowq.limit_lock (queue_id) values (v_queue_id);
    end if;

    return query
    select p_queue_name, case when v_queue_id is not null then 'created' else 'exists' end;
end;
$$;
