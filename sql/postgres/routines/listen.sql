create or replace function rowq.listen(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   listen
-- version   1
-- purpose   Have this session notified on the channel rowq of a queue's new messages.
-- promise   none
-- locks     a shared advisory lock until unlisten or the session's end; tried, never waited for
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   this engine's own
declare
    c_tries constant integer := 100;
    v_queue rowq.queue;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    if current_setting('max_prepared_transactions') <> '0' then
        -- A transaction that has notified cannot be prepared, so a producer's "prepare transaction"
        -- would fail.
        return query select p_queue_name, 'unavailable';
        return;
    end if;

    listen rowq;
    -- Producers hold the lock for a moment each, so a session that holds it for longer is no part
    -- of rowq.
    for v_try in 1..c_tries loop
        if pg_try_advisory_lock_shared(1919907698, v_queue.part_id) then
            return query select p_queue_name, 'listening';
            return;
        end if;
        perform pg_sleep(0.001);
    end loop;
    return query select p_queue_name, 'busy';
end;
$$;
