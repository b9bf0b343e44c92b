create or replace function rowq.elect_leader(p_queue_name text)
returns table (queue_name text, elected boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   elect_leader
-- version   1
-- purpose   Elect the session that calls maintain for a queue every second.
-- promise   P19
-- locks     an advisory lock until the session ends; tried, never waited for
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   this engine only
declare
    v_queue rowq.queue;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- A lock held by a session that may not call maintain elects nothing: then every session
    -- maintains.
    return query
    select p_queue_name,
           pg_try_advisory_lock(1919907699, v_queue.queue_id)
           or v_queue.queue_id <> all (rowq.internal_maintained_queues(1919907699));
end;
$$;
