create or replace function rowq.internal_require_part(p_part_id integer, p_queue_name text)
returns void
language plpgsql
as $$
-- routine   internal_require_part
-- version   1
-- purpose   Refuse a message for a queue that was dropped since its settings were read.
-- promise   P01
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
begin
    -- Airtight once the caller has written to rowq.message: from then on drop_queue waits for it.
    -- (Except under repeatable read, where an old snapshot still shows the queue.)
    if not exists (select 1 from rowq.queue q where q.part_id = p_part_id) then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
end;
$$;
