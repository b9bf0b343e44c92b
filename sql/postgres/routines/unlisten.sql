create or replace function rowq.unlisten(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set client_min_messages = error
as $$
-- routine   unlisten
-- version   1
-- purpose   Undo one listen; without listeners, producers notify no session.
-- promise   none
-- locks     releases the lock of listen
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   this engine's own
declare
    v_queue         rowq.queue;
    v_was_listening boolean;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);
    v_was_listening := pg_advisory_unlock_shared(1919907698, v_queue.queue_id);

    -- A session that has called listen more often still holds the lock and continues to listen.
    if not exists (
        select
        from pg_locks l
        where l.locktype = 'advisory'
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.classid = 1919907698::oid
          and l.objid = v_queue.queue_id::oid
          and l.pid = pg_backend_pid()
    ) then
        execute format('unlisten %I', rowq.internal_channel(v_queue.queue_id));
    end if;
    return query
    select p_queue_name, case when v_was_listening then 'stopped' else 'not_listening' end;
end;
$$;
