create or replace function rowq.queue_stats(
    p_queue_name       text default null,
    p_max_count        integer default 100000,
    p_after_queue_name text default null,
    p_max_queues       integer default null
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
    v_from text := coalesce(p_after_queue_name, '');
begin
    if p_max_count is null or p_max_count not between 1 and 100000000 then
        raise exception 'RQ711 invalid_argument: max_count must be between 1 and 100000000, got %',
            p_max_count
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range('max_queues', p_max_queues, 1, 10000);
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
        v_from := p_queue_name;
    end if;

    -- Start at the first name and stop at the last: a page reads no other queues. Each lane starts
    -- at its safe floor.
    return query
    select q.queue_name, q.paused_at is not null, r.ready,
           (
               select count(*)
               from (
                   select
                   from rowq.delayed d
                   where d.queue_id = q.queue_id
                   limit p_max_count
               ) x
           ),
           (
               select least(coalesce(sum(cardinality(x.message_ids)), 0), p_max_count)
               from (
                   select k.message_ids
                   from rowq.claim k
                   where k.queue_id = q.queue_id
                     and k.claim_id >= coalesce(
                         (
                             select f.safe_seq
                             from rowq.floor f
                             where f.queue_id = q.queue_id
                               and f.lane = -1 /* claim */
                             order by f.queue_id, f.lane, f.generation
                             limit 1
                         ),
                         0
                     )
                   limit p_max_count
               ) x
           ),
           (
               select count(*)
               from (
                   select
                   from rowq.dead d
                   where d.queue_id = q.queue_id
                   limit p_max_count
               ) x
           ),
           (
               select count(*)
               from (
                   (
                       select
                       from rowq.group_waiting g
                       where g.queue_id = q.queue_id
                       limit p_max_count
                   )
                   union all
                   (
                       select
                       from rowq.blocked b
                       where b.queue_id = q.queue_id
                       limit p_max_count
                   )
                   limit p_max_count
               ) x
           ),
           extract(epoch from clock_timestamp() - r.oldest)::double precision,
           q.lease_seconds, q.max_attempts::integer, q.backoff_base_seconds,
           q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
           q.max_body_length, q.group_limit::integer, q.group_after_dead, q.group_pause_seconds,
           q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds, q.history_days
    from rowq.queue q
    cross join lateral (
        with recursive lane as (
            (
                select f.lane, f.safe_seq
                from rowq.floor f
                where f.queue_id = q.queue_id
                  and f.lane >= 0
                order by f.queue_id, f.lane, f.generation
                limit 1
            )
            union all
            select n.lane, n.safe_seq
            from lane l
            cross join lateral (
                select f.lane, f.safe_seq
                from rowq.floor f
                where f.queue_id = q.queue_id
                  and f.lane > l.lane
                order by f.queue_id, f.lane, f.generation
                limit 1
            ) n
        )
        select (
                   select count(*)
                   from (
                       select
                       from lane l
                       cross join lateral (
                           select
                           from rowq.ready r
                           where r.queue_id = q.queue_id
                             and r.lane = l.lane
                             and r.seq >= l.safe_seq
                           limit p_max_count
                       ) x
                       limit p_max_count
                   ) h
               ) as ready,
               (
                   select min(h.enqueued_at)
                   from lane l
                   cross join lateral (
                       select m.enqueued_at
                       from rowq.ready r
                       join rowq.message m
                           on m.queue_id = r.queue_id and m.message_id = r.message_id
                       where r.queue_id = q.queue_id
                         and r.lane = l.lane
                         and r.seq >= l.safe_seq
                       order by r.queue_id, r.lane, r.seq
                       limit 1
                   ) h
               ) as oldest
    ) r
    where q.queue_name collate "C" >= v_from
      and case
          when p_queue_name is null then q.queue_name is distinct from p_after_queue_name
          else q.queue_name = p_queue_name
      end
    order by q.queue_name collate "C"
    limit case when p_queue_name is null then p_max_queues else 1 end;
end;
$$;
