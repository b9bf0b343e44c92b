create or replace function rowq.listen(p_queue_name text)
returns table (queue_name text, outcome text, channel text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   listen
-- version   1
-- purpose   Notify this session of new messages of a queue, on a channel with a secret name.
-- promise   none
-- locks     a shared advisory lock until unlisten or the end of the session: waits up to about 100
--           ms
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   this engine's own
declare
    c_tries   constant integer := 100;
    v_queue   rowq.queue;
    v_channel text;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);
    v_channel := rowq.internal_channel(v_queue.queue_id);

    if current_setting('max_prepared_transactions') <> '0' then
        -- A transaction that has notified cannot be prepared: a producer's "prepare transaction"
        -- would fail.
        return query select p_queue_name, 'unavailable', v_channel;
        return;
    end if;

    execute format('listen %I', v_channel);
    -- Producers hold the lock for microseconds: a session that holds it longer is not part of rowq.
    for v_try in 1..c_tries loop
        if pg_try_advisory_lock_shared(1919907698, v_queue.queue_id) then
            return query select p_queue_name, 'listening', v_channel;
            return;
        end if;
        perform pg_sleep(0.001);
    end loop;
    execute format('unlisten %I', v_channel);
    return query select p_queue_name, 'busy', v_channel;
end;
$$;
