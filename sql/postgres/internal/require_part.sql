create or replace function rowq.internal_require_part(p_part_id integer, p_queue_name text)
returns void
language plpgsql
as $$
-- routine   internal_require_part
-- purpose   Refuse a message for a queue that was dropped since its settings were read.
-- promise   P01
-- locks     none; under repeatable read the queue row, shared
-- errors    RQ701
begin
    -- The caller must have written to rowq.message: from then on drop_queue waits for it, so that
    -- the answer stays true.
    if current_setting('transaction_isolation') <> 'read committed' then
        -- An old snapshot still shows a queue that was dropped, but locking its row fails with
        -- 40001.
        perform 1
        from rowq.queue q
        where q.part_id = p_part_id
        for key share;
    else
        perform 1
        from rowq.queue q
        where q.part_id = p_part_id;
    end if;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;
end;
$$;
