create or replace function rowq.list_claims(
    p_queue_name     text default null,
    p_after_claim_id bigint default 0,
    p_max_claims     integer default 100
)
returns table (
    queue_name         text,
    claim_id           bigint,
    worker_name        text,
    message_count      integer,
    lease_until        timestamp with time zone,
    lease_left_seconds double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
-- routine   list_claims
-- version   1
-- purpose   List the claims of one queue or all, by id.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
begin
    if p_max_claims is null or p_max_claims not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_claims must be between 1 and 10000, got %',
            p_max_claims
            using errcode = 'RQ711';
    end if;
    if p_queue_name is not null then
        perform rowq.internal_require_queue(p_queue_name);
    end if;

    return query
    select q.queue_name, c.claim_id, c.worker_name, cardinality(c.message_ids), c.lease_until,
           extract(epoch from c.lease_until - clock_timestamp())::double precision
    from rowq.queue q
    cross join lateral (
        -- At most one page per queue is sorted.
        select k.claim_id, k.worker_name, k.message_ids, k.lease_until
        from rowq.claim k
        where k.queue_id = q.queue_id
          and k.claim_id > coalesce(p_after_claim_id, 0)
          and k.claim_id >= rowq.internal_read_safe_floor(q.queue_id, -1::smallint /* claim */)
        order by k.queue_id, k.claim_id
        limit p_max_claims
    ) c
    where p_queue_name is null
       or q.queue_name = p_queue_name
    order by c.claim_id
    limit p_max_claims;
end;
$$;
