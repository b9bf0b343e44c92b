create or replace function rowq.internal_notify(p_part_id integer)
returns void
language plpgsql
as $$
-- routine   internal_notify
-- purpose   Notify the sessions that listen for this queue's messages, at the commit: see listen.
-- locks     as internal_is_listened
-- differs   this engine's own
begin
    if rowq.internal_is_listened(p_part_id) then
        perform pg_notify('rowq', q.queue_name)
        from rowq.queue q
        where q.part_id = p_part_id;
    end if;
end;
$$;
