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
set jit = off
as $$
-- routine   queue_stats
-- version   1
-- purpose   Counts, age and settings of one queue or all.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
begin
    if p_max_count is null or p_max_count not between 1 and 100000000 then
        raise exception 'RQ711 invalid_argument: max_count must be between 1 and 100000000, got %',
            p_max_count
            using errcode = 'RQ711';
    end if;
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
    end if;

    return query
    select q.queue_name, q.paused_at is not null,
           r.ready, w.delayed, c.leased, f.dead, b.blocked,
           extract(epoch from clock_timestamp() - r.oldest)::double precision,
           q.lease_seconds, q.max_attempts::integer, q.backoff_base_seconds, q.backoff_factor,
           q.backoff_cap_seconds, q.backoff_jitter, q.archive_days, q.max_body_length,
           q.group_limit::integer, q.group_after_dead, q.group_pause_seconds,
           q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds, q.history_days
    from rowq.queue q
    cross join lateral rowq.internal_count_ready(q.part_id, p_max_count) r
    cross join lateral (
        select count(*) as delayed
        from (select 1 from rowq.delayed d where d.part_id = q.part_id limit p_max_count) x
    ) w
    cross join lateral (
        select least(coalesce(sum(cardinality(x.message_ids)), 0), p_max_count) as leased
        from (
            select k.message_ids
            from rowq.claim k
            where k.part_id = q.part_id
              and k.claim_id >= rowq.internal_read_safe_floor(q.part_id, -1::smallint)
            limit p_max_count
        ) x
    ) c
    cross join lateral (
        select count(*) as dead
        from (select 1 from rowq.dead d where d.part_id = q.part_id limit p_max_count) x
    ) f
    cross join lateral (
        select count(*) as blocked
        from (
            (select 1 from rowq.grouped g where g.part_id = q.part_id limit p_max_count)
            union all
            (select 1 from rowq.blocked b where b.part_id = q.part_id limit p_max_count)
            limit p_max_count
        ) x
    ) b
    where p_queue_name is null
       or q.queue_name = p_queue_name
    order by q.queue_name;
end;
$$;
