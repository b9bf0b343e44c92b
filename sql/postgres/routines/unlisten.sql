create or replace function rowq.unlisten(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set client_min_messages = error
as $$
-- routine   unlisten
-- version   1
-- purpose   Take back one listen; while nobody listens, producers notify nobody.
-- promise   none
-- locks     gives the lock of listen back
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   this engine's own; the channel stays, other queues may need it
declare
    v_queue rowq.queue;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    return query
    select p_queue_name,
           case when pg_advisory_unlock_shared(1919907698, v_queue.part_id)
               then 'stopped' else 'not_listening' end;
end;
$$;
