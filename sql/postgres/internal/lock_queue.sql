create or replace function rowq.internal_lock_queue(p_queue_name text)
returns integer
language plpgsql
as $$
-- routine   internal_lock_queue
-- purpose   Return the part of a queue, and keep the queue from being dropped.
-- promise   P15
-- locks     the queue row, shared; waits for a drop that is under way
-- errors    RQ701 RQ711
-- differs   this engine's own: elsewhere a row of the part is locked
declare
    v_part_id integer;
begin
    select q.part_id into v_part_id
    from rowq.queue q
    where q.queue_name = p_queue_name
    for key share;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
    return v_part_id;
end;
$$;
