create or replace function rowq.drop_queue(p_queue_name text, p_force boolean default false)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '47ms'
set jit = off
as $$
-- routine   drop_queue
-- version   1
-- purpose   Drop an empty queue or, with force, a queue with its messages and its archive.
-- promise   P02 P15
-- locks     the tables of all queues against writers, until the caller's transaction ends
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ704 RQ705 RQ711 RQ713
-- differs   requires READ COMMITTED
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_row   record;
begin
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- An older snapshot does not show rows committed before the tables are locked, so they would be
    -- left without their queue.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'RQ713 wrong_transaction_state: '
            'drop_queue requires READ COMMITTED'
            using errcode = 'RQ713';
    end if;

    perform rowq.internal_refuse_filled_queue(v_queue.queue_id, p_queue_name, p_force);

    -- Wait for open enqueues: their messages are not visible yet. Lock all tables first, in the
    -- order of workers, so that no delete below waits. Lock each in its own statement: if a timeout
    -- coincides with the end of a wait, another wait in the statement would report it as a cancel
    -- by the user. All timeouts together are shorter than deadlock_timeout, so that no deadlock
    -- ends a producer or worker.
    begin
        -- History may be long: delete it before other sessions wait, except locked rows. Row by
        -- row, because without statistics the planner may choose a nested loop.
        for v_row in
            select x.ended_at, x.message_id, x.claim_id
            from rowq.history x
            where x.queue_id = v_queue.queue_id
            for update skip locked
        loop
            delete from rowq.history h
            where h.queue_id = v_queue.queue_id
              and h.ended_at = v_row.ended_at
              and h.message_id = v_row.message_id
              and h.claim_id = v_row.claim_id;
        end loop;
        lock table rowq.queue in exclusive mode;
        lock table rowq.limit_lock in exclusive mode;
        lock table rowq.claim in exclusive mode;
        lock table rowq.floor in exclusive mode;
        lock table rowq.ready in exclusive mode;
        lock table rowq.delayed in exclusive mode;
        lock table rowq.message in exclusive mode;
        lock table rowq.dedup in exclusive mode;
        lock table rowq.group_waiting in exclusive mode;
        lock table rowq.group_slot in exclusive mode;
        lock table rowq.successor in exclusive mode;
        lock table rowq.blocked in exclusive mode;
        lock table rowq.deferred in exclusive mode;
        lock table rowq.dead in exclusive mode;
        lock table rowq.finished in exclusive mode;
        lock table rowq.archive in exclusive mode;
        lock table rowq.started in exclusive mode;
        lock table rowq.result in exclusive mode;
        lock table rowq.history in exclusive mode;
        -- Sessions that run schedules or expire messages wait for the tables above.
        lock table rowq.schedule in exclusive mode;
        lock table rowq.expiry in exclusive mode;
    exception
        when lock_not_available then
            raise exception 'RQ705 queue_busy: open transactions use the queue; retry'
                using errcode = 'RQ705';
    end;

    perform rowq.internal_refuse_filled_queue(v_queue.queue_id, p_queue_name, p_force);

    delete from rowq.ready r where r.queue_id = v_queue.queue_id;
    delete from rowq.delayed d where d.queue_id = v_queue.queue_id;
    delete from rowq.claim c where c.queue_id = v_queue.queue_id;
    delete from rowq.dead d where d.queue_id = v_queue.queue_id;
    delete from rowq.dedup d where d.queue_id = v_queue.queue_id;
    delete from rowq.group_waiting g where g.queue_id = v_queue.queue_id;
    delete from rowq.group_slot g where g.queue_id = v_queue.queue_id;
    delete from rowq.successor s where s.queue_id = v_queue.queue_id;
    delete from rowq.blocked b where b.queue_id = v_queue.queue_id;
    delete from rowq.deferred r where r.queue_id = v_queue.queue_id;
    delete from rowq.finished f where f.queue_id = v_queue.queue_id;
    delete from rowq.message m where m.queue_id = v_queue.queue_id;
    delete from rowq.archive a where a.queue_id = v_queue.queue_id;
    delete from rowq.started s where s.queue_id = v_queue.queue_id;
    delete from rowq.result r where r.queue_id = v_queue.queue_id;
    delete from rowq.history h where h.queue_id = v_queue.queue_id;
    delete from rowq.schedule s where s.queue_id = v_queue.queue_id;
    delete from rowq.expiry e where e.queue_id = v_queue.queue_id;
    -- Calls that bind, unbind or report a worker lock the queue's row first.
    delete from rowq.topic_binding b where b.queue_id = v_queue.queue_id;
    delete from rowq.worker w where w.queue_id = v_queue.queue_id;
    delete from rowq.limit_lock g where g.queue_id = v_queue.queue_id;
    delete from rowq.floor f where f.queue_id = v_queue.queue_id;
    delete from rowq.queue q where q.queue_id = v_queue.queue_id;

    return query select p_queue_name, 'dropped';
end;
$$;
