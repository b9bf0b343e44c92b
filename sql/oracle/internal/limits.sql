-- Limits: max_leased and rate_limit.
--
-- A dequeue from a limited queue counts the leased messages and the deliveries of the last
-- rate_seconds, and leases no more than the limits allow. It counts first without a lock, so that
-- polling a queue at its limit neither waits nor writes, then under the limit lock (the queue's
-- row in limit_lock), so that two dequeues cannot use the same capacity. There are no counters
-- that could leak capacity: a finished, reaped or rolled-back claim no longer counts as leased.
--
--   dequeue -> admit -> available_capacity, lock_limit
--   dequeue -> record_start
--   maintain_queue -> purge_started
--
-- Writes limit_lock, started. Only reads leased, queue.

function internal_admit(p_queue_id in number, p_wanted in number)
return number
is
-- purpose   Return how many messages a dequeue may lease, and hold the queue's limit lock.
-- locks     the limit lock: waits up to 100 ms, holds it until the transaction ends
-- errors    RQ713
-- differs   the isolation level cannot be read: a serializable transaction is refused only if other
--           sessions have leased since it began
begin
    -- Count without the lock first: polling a queue at its limit must not wait or write.
    if internal_available_capacity(p_queue_id, p_wanted) = 0 then
        return 0;
    end if;
    if not internal_lock_limit(p_queue_id) then
        return 0;
    end if;
    -- Count again in a new statement: it is newer than the lock, so it includes the previous
    -- holder's claim and changed settings.
    return internal_available_capacity(p_queue_id, p_wanted);
end internal_admit;

function internal_available_capacity(p_queue_id in number, p_wanted in number)
return number
is
-- purpose   Return how many of p_wanted messages the queue's limits allow now; 0 while it is paused.
    v_now      constant timestamp(6) := sys_extract_utc(systimestamp);
    v_capacity number := 0;
    -- Count from the first row, not from a floor, so that claims committed late are counted.
    cursor room_row is
        select least(
                   p_wanted,
                   case
                       when q.max_leased > 0 then q.max_leased - (
                           select /*+ index_rs_asc(l rowq_leased_pk) */ count(*)
                           from rowq_leased l
                           where l.queue_id = p_queue_id
                       )
                       else p_wanted
                   end,
                   case
                       when q.rate_limit > 0 then q.rate_limit - (
                           select /*+ index_rs_asc(s rowq_started_pk) */
                                  coalesce(sum(s.messages), 0)
                           from rowq_started s
                           where s.queue_id = p_queue_id
                             and s.started_at
                                 > v_now - numtodsinterval(q.rate_seconds, 'second')
                       )
                       else p_wanted
                   end
               ) as messages
        from rowq_queue q
        where q.queue_id = p_queue_id
          and q.paused_at is null;
begin
    open room_row;
    fetch room_row into v_capacity;
    close room_row;
    return greatest(v_capacity, 0);
end internal_available_capacity;

function internal_lock_limit(p_queue_id in number)
return boolean
is
-- purpose   Lock the limit lock of a queue; return whether it was free within 100 ms.
-- locks     the limit lock: waits up to 100 ms
-- errors    RQ713
-- differs   the row is updated, so that an older serializable transaction fails
    -- ORA-08177: this transaction is serializable and began before the limit lock was written.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_most_tries constant pls_integer := 10;
    v_tries pls_integer := 0;
    v_held  rowq_limit_lock.queue_id%type;
    cursor gate_row is
        select g.queue_id
        from rowq_limit_lock g
        where g.queue_id = p_queue_id
        for update skip locked;
begin
    loop
        open gate_row;
        fetch gate_row into v_held;
        close gate_row;
        exit when v_held is not null or v_tries = c_most_tries;
        v_tries := v_tries + 1;
        dbms_session.sleep(0.01);
    end loop;
    if v_held is null then
        return false;
    end if;
    update rowq_limit_lock g
    set g.locked_at = sys_extract_utc(systimestamp)
    where g.queue_id = p_queue_id;
    return true;
exception
    when e_not_serial then
        raise_application_error(
            -20713,
            'RQ713 wrong_transaction_state: a queue with max_leased or rate_limit requires'
            || ' READ COMMITTED'
        );
end internal_lock_limit;

procedure internal_record_start(
    p_queue_id   in number,
    p_claim_id   in number,
    p_started_at in timestamp,
    p_messages   in number
)
is
-- purpose   Record the deliveries that a claim started, in a queue with a rate_limit.
begin
    insert into rowq_started (queue_id, started_at, claim_id, messages)
    select p_queue_id, p_started_at, p_claim_id, p_messages
    from rowq_queue q
    where q.queue_id = p_queue_id
      and q.rate_limit > 0;
end internal_record_start;

procedure internal_purge_started(p_queue in t_queue, p_limit in number)
is
-- purpose   Delete up to p_limit rows of started that are too old to count.
-- locks     the deleted rows, skipping locked ones
    type t_start is record (
        started_at rowq_started.started_at%type,
        claim_id   rowq_started.claim_id%type
    );
    type t_starts is table of t_start index by pls_integer;
    -- Without a rate_limit all rows are too old.
    v_seconds constant number :=
        case when p_queue.rate_limit > 0 then p_queue.rate_seconds else 0 end;
    v_before  constant timestamp(6) :=
        sys_extract_utc(systimestamp) - numtodsinterval(v_seconds, 'second');
    v_since   constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.queue_id, -5 /* started */));
    v_old     t_starts;
    cursor old_rows is
        select /*+ index_rs_asc(s rowq_started_pk) no_batch_table_access_by_rowid(s) */
               s.started_at, s.claim_id
        from rowq_started s
        where s.queue_id = p_queue.queue_id
          and s.started_at >= v_since
          and s.started_at < v_before
        order by s.queue_id, s.started_at, s.claim_id
        for update skip locked;
begin
    open old_rows;
    fetch old_rows bulk collect into v_old limit p_limit;
    close old_rows;
    forall i in 1 .. v_old.count
        delete from rowq_started s
        where s.queue_id = p_queue.queue_id
          and s.started_at = v_old(i).started_at
          and s.claim_id = v_old(i).claim_id;
end internal_purge_started;
