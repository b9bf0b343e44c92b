create or replace function rowq.pause_queue(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   pause_queue
-- version   1
-- purpose   Stop the delivery of a queue; producers and finishing calls continue.
-- promise   P18
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_now constant timestamp with time zone := clock_timestamp();
begin
    perform rowq.internal_require_queue(p_queue_name);

    update rowq.queue q
    set paused_at = coalesce(q.paused_at, v_now)
    where q.queue_name = p_queue_name;
    if not found then
        -- The queue was dropped while this call waited for its row.
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    return query select p_queue_name, 'paused';
end;
$$;
