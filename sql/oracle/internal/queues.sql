-- Queues: settings, locks against drop_queue, and deletion.
--
-- Every call reads its queue's settings by name, once, and raises RQ701 if the queue does not
-- exist. A call that adds or moves messages also prevents drop_queue until its transaction ends.
-- drop_queue takes the opposite lock and fails with RQ705 after about a second, so calls never wait
-- long behind it.
--
-- Rows cannot be locked shared, so drop_queue locks the tables, and holds none while it waits for
-- another.
--
--   create_queue -> add_queue_rows
--   alter_queue, pause_queue, resume_queue, ... -> refuse_queue
--   alter_queue, drop_queue, pause_queue, ... -> require_queue -> refuse_queue
--   drop_queue -> remove_queue -> refuse_not_empty, delete_queue
--   bind_topic, unbind_topic -> lock_bindings -> require_queue
--   purge_queue -> purge_blocked, purge_group_waiting, purge_ready, purge_waiting
--   drop_days, record_maintain_error -> record_value
--
-- Writes archive, blocked, claim, dead, dedup, delayed, lock_bucket, expiry, finished, limit_lock,
-- group_waiting, history, lane, leased, message, group_slot, meta, queue, ready, deferred, result,
-- schedule, started, successor, topic_binding, worker.

procedure internal_add_queue_rows(p_queue_id in number)
is
-- purpose   Insert the lanes, the lock buckets and the limit lock of a new queue.
-- locks     new rows only
-- differs   no queue_lock: drop_queue locks the tables
    c_lanes   constant pls_integer := 28;
    c_buckets constant pls_integer := 64;
    v_lanes   t_numbers;
    v_open    t_numbers;
    v_buckets t_numbers;
begin
    for i in 1 .. c_lanes loop
        v_lanes(i) := i - 9;
        -- Most queues use only the lanes of the default priority: open them now.
        v_open(i) := case when v_lanes(i) in (10, 11) then 1 else 0 end;
    end loop;
    forall i in 1 .. c_lanes
        insert into rowq_lane (queue_id, lane, is_open)
        values (p_queue_id, v_lanes(i), v_open(i));

    for i in 1 .. c_buckets loop
        v_buckets(i) := i - 1;
    end loop;
    forall i in 1 .. c_buckets
        insert into rowq_lock_bucket (queue_id, bucket_no)
        values (p_queue_id, v_buckets(i));
    insert into rowq_limit_lock (queue_id)
    values (p_queue_id);
end internal_add_queue_rows;

procedure internal_refuse_queue(p_queue_name in varchar2)
is
-- purpose   Raise the error for a missing or unknown queue name.
-- errors    RQ701 RQ711
begin
    if p_queue_name is null then
        internal_refuse('queue_name is required');
    end if;
    raise_application_error(
        -20701,
        'RQ701 queue_not_found: queue "' || substr(p_queue_name, 1, 100) || '" does not exist'
    );
end internal_refuse_queue;

function internal_require_queue(p_queue_name in varchar2)
return t_queue
is
-- purpose   Return the settings of a queue; raise an error if it does not exist.
-- errors    RQ701 RQ711
    v_key   raw(400);
    v_queue t_queue;
    cursor named is
        select q.queue_id, q.lease_seconds, q.max_attempts, q.backoff_base_seconds,
               q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
               q.max_body_length, q.group_limit, q.group_after_dead, q.max_leased,
               q.rate_limit, q.rate_seconds, q.result_seconds, q.history_days, q.paused_at,
               q.waiting_until
        from rowq_queue q
        where q.queue_key = v_key;
begin
    if length(p_queue_name) <= 100 then
        v_key := utl_raw.cast_to_raw(p_queue_name);
        open named;
        fetch named into v_queue;
        close named;
    end if;
    if v_queue.queue_id is null then
        internal_refuse_queue(p_queue_name);
    end if;
    return v_queue;
end internal_require_queue;

procedure internal_remove_queue(
    p_queue_id   in number,
    p_queue_name in varchar2,
    p_force      in boolean
)
is
-- purpose   Remove an empty queue, or with p_force any queue, if no session writes.
-- locks     the tables against writers: waits up to 1 s for three of them, tries the others; all
--           rows of the queue
-- errors    RQ704 RQ705
-- differs   tables are locked as on PostgreSQL: rows cannot be locked shared
    e_busy exception;
    e_timeout exception;
    e_deadlock exception;
    pragma exception_init(e_busy, -54);
    pragma exception_init(e_timeout, -30006);
    pragma exception_init(e_deadlock, -60);
begin
    -- Wait for open enqueues, whose messages are not visible yet, and for open calls of workers and
    -- schedules. Writers of all queues queue behind a table lock that waits, so hold no table while
    -- waiting for another one, and then lock all or none.
    begin
        savepoint rowq_drop_part;
        lock table rowq_schedule in share row exclusive mode wait 1;
        rollback to savepoint rowq_drop_part;
        lock table rowq_claim in share row exclusive mode wait 1;
        rollback to savepoint rowq_drop_part;
        lock table rowq_message in share row exclusive mode wait 1;
        lock table rowq_schedule, rowq_topic_binding, rowq_worker, rowq_limit_lock, rowq_claim,
            rowq_leased, rowq_ready, rowq_delayed, rowq_lock_bucket, rowq_group_waiting,
            rowq_group_slot,
            rowq_deferred, rowq_successor, rowq_blocked, rowq_dead, rowq_finished, rowq_archive,
            rowq_started, rowq_expiry, rowq_result, rowq_history, rowq_lane, rowq_queue
            in share row exclusive mode nowait;
    exception
        when e_busy or e_timeout or e_deadlock then
            raise_application_error(
                -20705, 'RQ705 queue_busy: open transactions use the queue; retry'
            );
    end;
    if not p_force then
        internal_refuse_not_empty(p_queue_id, p_queue_name);
    end if;
    internal_delete_queue(p_queue_id);
    internal_record_maintain_error(p_queue_id, null);
end internal_remove_queue;

procedure internal_refuse_not_empty(p_queue_id in number, p_queue_name in varchar2)
is
-- purpose   Raise an error if a queue has messages or an archive.
-- errors    RQ704
    v_id number;
    cursor kept is
        select m.message_id
        from rowq_message m
        where m.queue_id = p_queue_id
        union all
        select a.message_id
        from rowq_archive a
        where a.queue_id = p_queue_id;
begin
    open kept;
    fetch kept into v_id;
    close kept;
    if v_id is not null then
        raise_application_error(
            -20704,
            'RQ704 queue_not_empty: queue "' || p_queue_name
            || '" has messages or an archive; use force to drop them'
        );
    end if;
end internal_refuse_not_empty;

procedure internal_delete_queue(p_queue_id in number)
is
-- purpose   Delete a queue and all of its rows.
-- locks     all rows of the queue
begin
    delete from rowq_schedule s where s.queue_id = p_queue_id;
    delete from rowq_topic_binding b where b.queue_id = p_queue_id;
    delete from rowq_worker w where w.queue_id = p_queue_id;
    delete from rowq_ready r where r.queue_id = p_queue_id;
    delete from rowq_delayed d where d.queue_id = p_queue_id;
    delete from rowq_leased l where l.queue_id = p_queue_id;
    delete from rowq_claim c where c.queue_id = p_queue_id;
    delete from rowq_dead d where d.queue_id = p_queue_id;
    delete from rowq_dedup d where d.queue_id = p_queue_id;
    delete from rowq_blocked b where b.queue_id = p_queue_id;
    delete from rowq_successor s where s.queue_id = p_queue_id;
    delete from rowq_group_waiting g where g.queue_id = p_queue_id;
    delete from rowq_group_slot t where t.queue_id = p_queue_id;
    delete from rowq_deferred r where r.queue_id = p_queue_id;
    delete from rowq_expiry e where e.queue_id = p_queue_id;
    delete from rowq_result r where r.queue_id = p_queue_id;
    delete from rowq_history h where h.queue_id = p_queue_id;
    delete from rowq_finished f where f.queue_id = p_queue_id;
    delete from rowq_message m where m.queue_id = p_queue_id;
    delete from rowq_archive a where a.queue_id = p_queue_id;
    delete from rowq_started s where s.queue_id = p_queue_id;
    delete from rowq_limit_lock g where g.queue_id = p_queue_id;
    delete from rowq_lock_bucket d where d.queue_id = p_queue_id;
    delete from rowq_lane l where l.queue_id = p_queue_id;
    delete from rowq_queue q where q.queue_id = p_queue_id;
end internal_delete_queue;

function internal_lock_bindings(p_queue_name in varchar2)
return t_queue
is
-- purpose   Return the settings of a queue and prevent it from being dropped.
-- locks     the table of bindings against drop_queue; waits for an open drop
-- errors    RQ701 RQ711
-- differs   other engines lock the queue's row in queue or queue_lock
begin
    -- The next statement sees what the awaited drop has committed.
    lock table rowq_topic_binding in row exclusive mode;
    return internal_require_queue(p_queue_name);
end internal_lock_bindings;

function internal_purge_blocked(p_queue in t_queue, p_limit in number)
return number
is
-- purpose   Delete up to p_limit blocked messages; null means all.
-- locks     blocked rows, skipping locked ones; then as internal_finish
    c_step     constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_ids      t_numbers;
    v_lanes    t_numbers;
    v_messages t_messages;
    cursor waiting_rows is
        select /*+ index_rs_asc(b rowq_blocked_pk) no_batch_table_access_by_rowid(b) */
               b.message_id, b.lane
        from rowq_blocked b
        where b.queue_id = p_queue.queue_id
        order by b.queue_id, b.message_id
        for update skip locked;
begin
    open waiting_rows;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        fetch waiting_rows bulk collect into v_ids, v_lanes limit v_step;
        exit when v_ids.count = 0;
        v_messages.delete;
        internal_pop_blocked(p_queue.queue_id, v_ids, v_lanes, v_messages);
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    close waiting_rows;
    return v_removed;
end internal_purge_blocked;

function internal_purge_group_waiting(p_queue in t_queue, p_limit in number)
return number
is
-- purpose   Delete up to p_limit messages that wait in groups; null means all.
-- locks     group_waiting rows, skipping locked ones; then as internal_finish
    type t_waiting_row is record (
        group_key  rowq_group_waiting.group_key%type,
        message_id rowq_group_waiting.message_id%type
    );
    type t_waiting_rows is table of t_waiting_row index by pls_integer;
    c_step     constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_waiting_rows;
    v_messages t_messages;
    cursor waiting_rows is
        select /*+ index_rs_asc(g rowq_group_waiting_pk) no_batch_table_access_by_rowid(g) */
               g.group_key, g.message_id
        from rowq_group_waiting g
        where g.queue_id = p_queue.queue_id
        order by g.queue_id, g.group_key, g.message_id
        for update skip locked;
begin
    open waiting_rows;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        fetch waiting_rows bulk collect into v_locked limit v_step;
        exit when v_locked.count = 0;
        forall i in 1 .. v_locked.count
            delete from rowq_group_waiting g
            where g.queue_id = p_queue.queue_id
              and g.group_key = v_locked(i).group_key
              and g.message_id = v_locked(i).message_id;
        v_messages.delete;
        -- Finish a message only if this statement deleted its row.
        for i in 1 .. v_locked.count loop
            if sql%bulk_rowcount(i) = 1 then
                v_messages(v_messages.count + 1).message_id := v_locked(i).message_id;
                v_messages(v_messages.count).is_without_slot := 1;
            end if;
        end loop;
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    close waiting_rows;
    return v_removed;
end internal_purge_group_waiting;

function internal_purge_ready(p_queue in t_queue, p_limit in number)
return number
is
-- purpose   Delete up to p_limit ready messages, lane by lane; null means all.
-- locks     ready rows, skipping locked ones; then as internal_finish
    c_step     constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_locked_rows;
    v_messages t_messages;
    cursor ready_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) no_batch_table_access_by_rowid(r) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.queue_id = p_queue.queue_id
        order by r.queue_id, r.lane, r.seq, r.message_id
        for update skip locked;
begin
    open ready_rows;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        fetch ready_rows bulk collect into v_locked limit v_step;
        exit when v_locked.count = 0;
        v_messages.delete;
        internal_delete_ready(v_locked, v_messages);
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    close ready_rows;
    return v_removed;
end internal_purge_ready;

function internal_purge_waiting(p_queue in t_queue, p_of_dead in boolean, p_limit in number)
return number
is
-- purpose   Delete up to p_limit delayed or dead messages; null means all.
-- locks     delayed or dead rows, skipping locked ones; then as internal_finish
    c_step     constant pls_integer := 5000;
    v_removed  number := 0;
    v_step     pls_integer;
    v_locked   t_locked_rows;
    v_messages t_messages;
    cursor delayed_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.queue_id = p_queue.queue_id
        order by d.queue_id, d.due_at, d.message_id
        for update skip locked;
    cursor dead_rows is
        select /*+ index_rs_asc(d rowq_dead_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.queue_id = p_queue.queue_id
        order by d.queue_id, d.message_id
        for update skip locked;
begin
    if p_of_dead then
        open dead_rows;
    else
        open delayed_rows;
    end if;
    while p_limit is null or v_removed < p_limit loop
        v_step := least(c_step, coalesce(p_limit - v_removed, c_step));
        v_messages.delete;
        if p_of_dead then
            fetch dead_rows bulk collect into v_locked limit v_step;
            exit when v_locked.count = 0;
            internal_delete_dead(v_locked, v_messages);
        else
            fetch delayed_rows bulk collect into v_locked limit v_step;
            exit when v_locked.count = 0;
            internal_delete_delayed(v_locked, v_messages);
        end if;
        internal_finish(p_queue, v_messages, 'cancelled');
        v_removed := v_removed + v_messages.count;
    end loop;
    if p_of_dead then
        close dead_rows;
    else
        close delayed_rows;
    end if;
    return v_removed;
end internal_purge_waiting;

procedure internal_record_value(p_name in varchar2, p_value in varchar2)
is
-- purpose   Set a value in meta.
-- locks     a row of meta
-- differs   other engines: part of internal_record_maintain_error and internal_drop_days
begin
    merge into rowq_meta m
    using (select p_name as name from dual) n on (m.name = n.name)
    when matched then update
        set m.value      = p_value,
            m.changed_at = sys_extract_utc(systimestamp)
    when not matched then insert (name, value, changed_at)
        values (n.name, p_value, sys_extract_utc(systimestamp));
exception
    when dup_val_on_index then
        -- Another session has just inserted the same row.
        null;
end internal_record_value;
