create or replace function rowq.queue_stats(
    p_queue_name text default null,
    p_max_count  integer default 100000
)
returns table (
    queue_name           text,
    is_paused            boolean,
    ready                bigint,
    delayed              bigint,
    leased               bigint,
    dead                 bigint,
    blocked              bigint,
    oldest_ready_seconds double precision,
    lease_seconds        integer,
    max_attempts         integer,
    backoff_base_seconds double precision,
    backoff_factor       double precision,
    backoff_cap_seconds  double precision,
    backoff_jitter       double precision,
    archive_days         integer,
    max_body_length      integer,
    group_limit          integer,
    group_after_dead     text,
    group_pause_seconds  double precision,
    max_leased           integer,
    rate_limit           integer,
    rate_seconds         double precision,
    result_seconds       double precision,
    history_days         integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   queue_stats
-- version   1
-- purpose   Return counts, age and settings of one queue or all.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_ready record;
    v_from  bigint;
begin
    if p_max_count is null or p_max_count not between 1 and 100000000 then
        raise exception 'RQ711 invalid_argument: max_count must be between 1 and 100000000, got %',
            p_max_count
            using errcode = 'RQ711';
    end if;
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
    end if;

    -- One statement reads only rows of this queue.
    for v_queue in
        select q.queue_id, q.queue_name, q.lease_seconds, q.max_attempts, q.backoff_base_seconds,
               q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length, q.group_limit, q.group_after_dead, q.group_pause_seconds,
               q.has_deferred, q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds,
               q.history_days, q.paused_at, q.created_at
        from rowq.queue q
        where p_queue_name is null
           or q.queue_name = p_queue_name
        order by q.queue_name collate "C"
    loop
        v_ready := rowq.internal_count_ready(v_queue.queue_id, p_max_count);
        v_from := rowq.internal_read_safe_floor(v_queue.queue_id, -1::smallint /* claim */);
        return query
        select v_queue.queue_name, v_queue.paused_at is not null, v_ready.ready,
               (
                   select count(*)
                   from (
                       select
                       from rowq.delayed d
                       where d.queue_id = v_queue.queue_id
                       limit p_max_count
                   ) x
               ),
               (
                   select least(coalesce(sum(cardinality(x.message_ids)), 0), p_max_count)
                   from (
                       select k.message_ids
                       from rowq.claim k
                       where k.queue_id = v_queue.queue_id
                         and k.claim_id >= v_from
                       limit p_max_count
                   ) x
               ),
               (
                   select count(*)
                   from (
                       select
                       from rowq.dead d
                       where d.queue_id = v_queue.queue_id
                       limit p_max_count
                   ) x
               ),
               (
                   select count(*)
                   from (
                       (
                           select
                           from rowq.group_waiting g
                           where g.queue_id = v_queue.queue_id
                           limit p_max_count
                       )
                       union all
                       (
                           select
                           from rowq.blocked b
                           where b.queue_id = v_queue.queue_id
                           limit p_max_count
                       )
                       limit p_max_count
                   ) x
               ),
               extract(epoch from clock_timestamp() - v_ready.oldest)::double precision,
               v_queue.lease_seconds, v_queue.max_attempts::integer, v_queue.backoff_base_seconds,
               v_queue.backoff_factor, v_queue.backoff_cap_seconds, v_queue.backoff_jitter,
               v_queue.archive_days, v_queue.max_body_length, v_queue.group_limit::integer,
               v_queue.group_after_dead, v_queue.group_pause_seconds, v_queue.max_leased,
               v_queue.rate_limit, v_queue.rate_seconds, v_queue.result_seconds,
               v_queue.history_days;
    end loop;
end;
$$;
