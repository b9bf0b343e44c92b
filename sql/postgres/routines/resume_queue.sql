create or replace function rowq.resume_queue(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   resume_queue
-- version   1
-- purpose   Resume the delivery of a queue.
-- promise   P18
-- locks     the queue row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   notifies listening sessions
#variable_conflict use_column
declare
    v_queue_id integer;
begin
    perform rowq.internal_require_queue(p_queue_name);

    update rowq.queue q
    set paused_at = null
    where q.queue_name = p_queue_name
    returning q.queue_id into v_queue_id;
    if not found then
        -- The queue was dropped while this call waited for its row.
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    perform rowq.internal_notify(v_queue_id);

    return query select p_queue_name, 'resumed';
end;
$$;
