create or replace function rowq.health()
returns table (check_name text, queue_name text, status text, value double precision, detail text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
-- routine   health
-- version   1
-- purpose   Check for problems: blocked cleanup, overdue work, expired leases, dead messages, sequences.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   the horizon and sequence checks are this engine's
#variable_conflict use_column
begin
    return query
    select h.check_name, h.queue_name,
           case
               when h.value >= h.critical then 'critical'
               when h.value >= h.warning then 'warning'
               else 'ok'
           end,
           h.value, h.detail
    from (
        select t.check_name, t.queue_name, t.value, t.warning, t.critical, t.detail
        from rowq.internal_health_server() t
        union all
        select t.check_name, t.queue_name, t.value, t.warning, t.critical, t.detail
        from rowq.internal_health_queues() t
        union all
        select t.check_name, t.queue_name, t.value, t.warning, t.critical, t.detail
        from rowq.internal_health_limits() t
    ) h
    order by h.check_name collate "C", h.queue_name collate "C" nulls first,
             h.detail collate "C";
end;
$$;
