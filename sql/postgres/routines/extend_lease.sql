create or replace function rowq.extend_lease(
    p_queue_name    text,
    p_claim_id      bigint,
    p_lease_seconds integer default null,
    p_progress      text default null
)
returns table (claim_id bigint, lease_until timestamp with time zone, cancel_ids bigint[])
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   extend_lease
-- version   1
-- purpose   Extend the lease of a claim to lease_seconds from now; it is never shortened.
-- promise   P08 P34
-- locks     the claim row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_queue_id      integer;
    v_lease_seconds integer;
    v_lease_until   timestamp with time zone;
    v_now           timestamp with time zone;
    v_tries         integer := 0;
begin
    if p_claim_id is null then
        raise exception 'RQ711 invalid_argument: claim_id is required'
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    select q.queue_id, coalesce(p_lease_seconds, q.lease_seconds)
    into v_queue_id, v_lease_seconds
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    loop
        v_tries := v_tries + 1;
        v_now := clock_timestamp();
        v_lease_until := v_now + make_interval(secs => v_lease_seconds);
        update rowq.claim c
        set lease_until = greatest(c.lease_until, v_lease_until),
            progress    = coalesce(left(p_progress, 2000), c.progress)
        where c.queue_id = v_queue_id
          and c.claim_id = p_claim_id
        returning c.claim_id, c.lease_until, c.cancel_ids
        into claim_id, lease_until, cancel_ids;
        -- If the update waited for the row, repeat it so that the lease counts from now. This
        -- transaction holds the row, so the second try does not wait.
        exit when not found
            or v_tries = 2
            or clock_timestamp() - v_now < interval '100 milliseconds';
    end loop;

    if not found then
        raise exception 'RQ721 stale_claim: claim % no longer holds any messages', p_claim_id
            using errcode = 'RQ721';
    end if;
    return next;
end;
$$;
