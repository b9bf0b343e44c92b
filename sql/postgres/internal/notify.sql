create or replace function rowq.internal_notify(p_part_id integer)
returns void
language plpgsql
as $$
-- routine   internal_notify
-- purpose   Notify the sessions that listen for this queue's messages, at the commit: see listen.
-- locks     as internal_is_listened
-- differs   this engine's own
declare
    v_channel text;
begin
    if rowq.internal_is_listened(p_part_id) then
        v_channel := rowq.internal_channel(p_part_id);
        perform pg_notify(v_channel, q.queue_name)
        from rowq.queue q
        where q.part_id = p_part_id;
    end if;
end;
$$;
