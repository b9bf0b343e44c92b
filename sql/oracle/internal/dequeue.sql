-- Dequeue: lease messages, and wait for them.
--
-- A dequeue locks the first rows of the best lane, skips locked ones, deletes them from ready and
-- inserts one claim: one lease, one heartbeat and one complete per batch. A rollback restores
-- everything. If nothing is ready, it promotes due messages and runs some deferred work, so a queue
-- without maintain still moves. dequeue_wait repeats that in short transactions until a message
-- comes or the time is up.
--
-- The two helpers without the prefix internal_ are public: package rowq_wait calls them by dynamic
-- SQL, so that waiting sessions do not block a new body of rowq. With dbms_lock one waiter polls
-- for all; with the optional wake-up queue producers wake it.
--
--   resume_queue, enqueue, enqueue_batch, ... -> wake_waiters
--   dequeue_fast -> dequeue -> require_lanes, pop_ready, open_lanes_of
--   open_lanes_for, oldest_ready -> open_lanes_of
--   dequeue_wait -> has_wakeup_queue, messages_json, stop_polling, try_become_poller,
--       poller_lock_number
--   dequeue_wait -> poll_once -> dequeue, trim_claim, record_waiter
--   dequeue_wait -> wait_for_wakeup -> record_waiter
--   peek -> peek_ready -> open_lanes_of
--
-- Writes claim, leased, queue. Only reads lane, message, ready.

procedure internal_wake_waiters(p_queue_id in number, p_waiting_until in timestamp)
is
-- purpose   Wake the sessions that wait for a queue's messages, if wakeup.sql was run.
-- locks     none that block other sessions
-- commits   never; waiters wake when the caller's transaction commits
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
begin
    if p_waiting_until is null or p_waiting_until < sys_extract_utc(systimestamp) then
        return;
    end if;
    -- Dynamic SQL: the package exists only if the owner has run wakeup.sql.
    execute immediate 'begin rowq_wakeup.wake(:1); end;' using p_queue_id;
exception
    when e_cancelled then
        raise;
    when others then
        -- Ignore a failed wake-up: waiters poll once a second.
        return;
end internal_wake_waiters;

procedure internal_dequeue(
    p_queue_name    in varchar2,
    p_batch_size    in number,
    p_worker_name   in varchar2,
    p_lease_seconds in number,
    p_queue_id      out number,
    p_claim_id      out number,
    p_lease_until   out timestamp
)
is
-- purpose   Lease up to p_batch_size ready messages to one new claim; null if there are none.
-- locks     ready rows, skipping locked ones; the new claim row; the limit lock, if the queue has
--           limits
-- errors    RQ701 RQ711 RQ713
-- differs   shared by two routines; if nothing is ready it takes no lock and begins no transaction
    v_queue        t_queue;
    v_lanes        t_lanes;
    v_has_deferred boolean;
    v_messages     t_messages;
    v_found        pls_integer;
    v_batch_size   number := p_batch_size;
    v_is_limited   boolean;
    v_now          timestamp(6);
begin
    p_claim_id := null;
    p_lease_until := null;
    internal_check_whole('batch_size', p_batch_size, 1, 1000, p_is_required => true);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    if length(p_worker_name) > 200 then
        internal_refuse('worker_name must be at most 200 characters');
    end if;
    internal_require_lanes(p_queue_name, v_queue, v_lanes, v_has_deferred);
    p_queue_id := v_queue.queue_id;

    if v_queue.paused_at is not null then
        return;
    end if;
    v_is_limited := v_queue.max_leased + v_queue.rate_limit > 0;
    if v_is_limited then
        v_batch_size := internal_admit(v_queue.queue_id, p_batch_size);
        if v_batch_size = 0 then
            return;
        end if;
    end if;

    internal_pop_ready(v_queue.queue_id, v_lanes, v_batch_size, v_messages);
    -- Nothing is ready. Promote due messages and run deferred work now instead of waiting for
    -- maintain.
    if v_messages.count = 0 then
        v_found := internal_promote(v_queue.queue_id, v_batch_size);
        if v_found = 0 and v_has_deferred then
            v_found := internal_run_deferred_groups(v_queue.queue_id, 10);
        end if;
        if v_found > 0 then
            v_lanes := internal_open_lanes_of(v_queue.queue_id);
            internal_pop_ready(v_queue.queue_id, v_lanes, v_batch_size, v_messages);
        end if;
    end if;
    if v_messages.count = 0 then
        return;
    end if;

    v_now := sys_extract_utc(systimestamp);
    p_lease_until := v_now
        + numtodsinterval(coalesce(p_lease_seconds, v_queue.lease_seconds), 'second');
    insert into rowq_claim (queue_id, claim_id, leased_at, lease_until, worker_name)
    values (v_queue.queue_id, rowq_claim_seq.nextval, v_now, p_lease_until, p_worker_name)
    returning claim_id into p_claim_id;
    forall i in 1 .. v_messages.count
        insert into rowq_leased (queue_id, claim_id, place, message_id, lane, attempt)
        values (
            v_queue.queue_id, p_claim_id, v_messages(i).seq, v_messages(i).message_id,
            v_messages(i).lane, v_messages(i).attempt
        );
    if v_is_limited then
        internal_record_start(v_queue.queue_id, p_claim_id, v_now, v_messages.count);
    end if;
end internal_dequeue;

procedure internal_require_lanes(
    p_queue_name   in varchar2,
    p_queue        out nocopy t_queue,
    p_lanes        out nocopy t_lanes,
    p_has_deferred out boolean
)
is
-- purpose   Read a queue's settings and open lanes, best first; raise an error if it is unknown.
-- errors    RQ701 RQ711
    v_key   raw(400);
    v_found t_open_lanes;
    v_next  pls_integer;
begin
    if length(p_queue_name) <= 100 then
        v_key := utl_raw.cast_to_raw(p_queue_name);
        -- Every queue has open lanes: those of the default priority are never closed. Of the lanes
        -- below 0 only that of deferred may be open.
        select /*+ leading(q l) use_nl(l) index(l rowq_lane_pk) */
               q.queue_id, q.lease_seconds, q.max_leased, q.rate_limit, q.paused_at, l.lane,
               l.floor_seq
        bulk collect into v_found
        from rowq_queue q
        join rowq_lane l
          on l.queue_id = q.queue_id
         and l.is_open = 1
        where q.queue_key = v_key
        order by l.queue_id, l.lane;
    end if;
    if v_found.count = 0 then
        internal_refuse_queue(p_queue_name);
    end if;

    p_lanes.delete;
    p_has_deferred := false;
    p_queue.queue_id := v_found(1).queue_id;
    p_queue.lease_seconds := v_found(1).lease_seconds;
    p_queue.max_leased := v_found(1).max_leased;
    p_queue.rate_limit := v_found(1).rate_limit;
    p_queue.paused_at := v_found(1).paused_at;
    for i in 1 .. v_found.count loop
        if v_found(i).lane = -4 /* deferred */ then
            p_has_deferred := true;
        else
            v_next := p_lanes.count + 1;
            p_lanes(v_next).lane := v_found(i).lane;
            p_lanes(v_next).floor_seq := v_found(i).floor_seq;
        end if;
    end loop;
end internal_require_lanes;

procedure internal_pop_ready(
    p_queue_id in number,
    p_lanes    in t_lanes,
    p_limit    in number,
    p_messages out nocopy t_messages
)
is
-- purpose   Lease up to p_limit messages from the lanes, in the order of p_lanes.
-- locks     ready rows, skipping locked ones
-- differs   a cursor bounds the batch: rownum would count before the skip, and fetch first is
--           refused
    v_probe  rowq_ready.message_id%type;
    v_left   pls_integer;
    v_locked t_locked_rows;
    cursor lane_head(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.queue_id, r.lane, r.seq, r.message_id;
    -- The order is that of the index: nothing is sorted, and one fetch of n rows locks n rows.
    -- Batched table access would break that order.
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) no_batch_table_access_by_rowid(r) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.queue_id, r.lane, r.seq, r.message_id
        for update skip locked;
begin
    p_messages.delete;
    for i in 1 .. p_lanes.count loop
        exit when p_messages.count >= p_limit;
        -- Read without a lock first, so that a call that finds nothing begins no transaction.
        v_probe := null;
        open lane_head(p_lanes(i).lane, p_lanes(i).floor_seq);
        fetch lane_head into v_probe;
        close lane_head;
        if v_probe is not null then
            v_left := p_limit - p_messages.count;
            open lane_rows(p_lanes(i).lane, p_lanes(i).floor_seq);
            fetch lane_rows bulk collect into v_locked limit v_left;
            close lane_rows;
            internal_delete_ready(v_locked, p_messages);
        end if;
    end loop;

    -- From here on seq is the position in the claim.
    for i in 1 .. p_messages.count loop
        p_messages(i).attempt := p_messages(i).attempt + 1;
        p_messages(i).seq := i;
    end loop;
end internal_pop_ready;

function internal_open_lanes_of(p_queue_id in number)
return t_lanes
is
-- purpose   Return the open lanes, best first, with their floors.
    v_lanes t_lanes;
begin
    select l.lane, l.floor_seq
    bulk collect into v_lanes
    from rowq_lane l
    where l.queue_id = p_queue_id
      and l.lane >= 0
      and l.is_open = 1
    order by l.queue_id, l.lane;
    return v_lanes;
end internal_open_lanes_of;

function internal_has_wakeup_queue
return boolean
is
-- purpose   Return whether wakeup.sql was run.
    v_count pls_integer;
begin
    select count(*) into v_count
    from user_objects o
    where o.object_name = 'ROWQ_WAKEUP'
      and o.object_type = 'PACKAGE BODY';
    return v_count > 0;
end internal_has_wakeup_queue;

procedure poll_once(
    p_queue_name    in varchar2,
    p_batch_size    in number,
    p_worker_name   in varchar2,
    p_lease_seconds in number,
    p_waiting_until in timestamp,
    p_queue_id      out number,
    p_claim_id      out number,
    p_lease_until   out timestamp
)
is
-- purpose   Poll once for dequeue_wait: lease as much as one answer holds; a null claim if nothing is ready.
-- locks     as dequeue_fast; for a waiter the queue row, skipped if locked
-- commits   never; the caller commits at once
-- errors    RQ701 RQ711 RQ713
-- differs   this engine's own: public, because package rowq_wait calls it
begin
    internal_dequeue(
        p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, p_queue_id, p_claim_id,
        p_lease_until
    );
    if p_claim_id is not null then
        internal_trim_claim(p_queue_id, p_claim_id);
        if p_waiting_until is not null then
            internal_record_waiter(p_queue_id, null);
        end if;
    end if;
end poll_once;

procedure internal_trim_claim(p_queue_id in number, p_claim_id in number)
is
-- purpose   Return the messages of a new claim that exceed 64 MB, except the first.
-- locks     rows of leased that are not committed yet
    c_most  constant number := 67108864;
    v_held  t_messages := internal_claimed_messages(p_queue_id, p_claim_id);
    v_rest  t_messages;
    v_place number := 0;
    v_total number := 0;
begin
    for each_message in (
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               m.headers, m.body, m.body_binary
        from rowq_leased l
        join rowq_message m
          on m.queue_id = l.queue_id
         and m.message_id = l.message_id
        where l.queue_id = p_queue_id
          and l.claim_id = p_claim_id
        order by l.queue_id, l.claim_id, l.place
    ) loop
        v_place := v_place + 1;
        v_total := v_total + coalesce(dbms_lob.getlength(each_message.body), 0)
            + coalesce(dbms_lob.getlength(each_message.body_binary), 0) * 4 / 3
            + coalesce(dbms_lob.getlength(each_message.headers), 0) + 1000;
        if v_total > c_most and v_place > 1 then
            v_rest(v_rest.count + 1) := v_held(v_place);
        end if;
    end loop;

    forall i in 1 .. v_rest.count
        delete from rowq_leased l
        where l.queue_id = p_queue_id
          and l.claim_id = p_claim_id
          and l.place = v_rest(i).seq;
    internal_as_front(v_rest, 1);
    internal_push_ready(p_queue_id, v_rest);
end internal_trim_claim;

procedure internal_record_waiter(p_queue_id in number, p_waiting_until in timestamp)
is
-- purpose   Record until when a session waits for a queue's messages; null if none does.
-- locks     the queue row, skipped if locked
    v_row_id rowid;
    cursor queue_row is
        select q.rowid
        from rowq_queue q
        where q.queue_id = p_queue_id
        for update skip locked;
begin
    open queue_row;
    fetch queue_row into v_row_id;
    close queue_row;
    if v_row_id is not null then
        update rowq_queue q
        set q.waiting_until = p_waiting_until
        where q.rowid = v_row_id;
    end if;
end internal_record_waiter;

function messages_json(
    p_queue_id    in number,
    p_claim_id    in number,
    p_lease_until in timestamp
)
return clob
is
-- purpose   Return a claim's messages as a JSON array; null without a claim.
-- differs   this engine's own: public, because the query of dequeue_wait's result calls it
    -- The array is built when the result is fetched: a temporary LOB in a variable ends with the
    -- block of the variable, but a function's result lives until it is fetched.
    v_object json_object_t;
    v_text   clob := '[';

    procedure put_text(p_key in varchar2, p_text in clob)
    is
    begin
        if p_text is null then
            v_object.put_null(p_key);
        elsif dbms_lob.getlength(p_text) = 0 then
            -- An empty text is not null, but put takes '' as null, and before 21c only an array or
            -- object can be parsed.
            v_object.put(p_key, json_array_t.parse('[""]').get(0));
        else
            v_object.put(p_key, p_text);
        end if;
    end put_text;
begin
    if p_claim_id is null then
        return null;
    end if;
    for each_message in (
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               l.message_id, l.attempt, m.message_type, m.headers, m.body, m.body_binary,
               m.enqueued_at, m.last_error
        from rowq_leased l
        join rowq_message m
          on m.queue_id = l.queue_id
         and m.message_id = l.message_id
        where l.queue_id = p_queue_id
          and l.claim_id = p_claim_id
        order by l.queue_id, l.claim_id, l.place
    ) loop
        v_object := json_object_t();
        v_object.put('claim_id', p_claim_id);
        v_object.put('message_id', each_message.message_id);
        v_object.put('attempt', each_message.attempt);
        put_text('message_type', each_message.message_type);
        put_text('body', each_message.body);
        put_text('body_binary', internal_to_base64(each_message.body_binary));
        put_text('enqueued_at', internal_iso_text(each_message.enqueued_at));
        put_text('lease_until', internal_iso_text(p_lease_until));
        put_text('last_error', each_message.last_error);

        -- Append headers as text: a JSON object would round their numbers.
        if dbms_lob.getlength(v_text) > 1 then
            dbms_lob.append(v_text, ',');
        end if;
        dbms_lob.append(v_text, '{"headers":');
        dbms_lob.append(v_text, coalesce(each_message.headers, to_clob('null')));
        dbms_lob.append(v_text, ',');
        dbms_lob.append(v_text, substr(v_object.to_clob(), 2));
    end loop;
    dbms_lob.append(v_text, ']');
    return v_text;
end messages_json;

procedure internal_stop_polling(p_lock in number)
is
-- purpose   Stop polling, so that another waiter can.
-- locks     releases the session's lock p_lock
    v_result number;
begin
    execute immediate
        'begin :1 := sys.dbms_lock.release(id => :2); end;'
        using out v_result, in p_lock;
end internal_stop_polling;

function internal_try_become_poller(p_lock in number)
return boolean
is
-- purpose   Wait up to a second to become the queue's poller.
-- locks     the lock p_lock, kept until internal_stop_polling or the session's end
    v_result number;
begin
    -- Dynamic SQL, so that the package compiles without a right to dbms_lock.
    execute immediate
        'begin :1 := sys.dbms_lock.request(id => :2, lockmode => sys.dbms_lock.x_mode,'
        || ' timeout => 1, release_on_commit => false); end;'
        using out v_result, in p_lock;
    -- 0: granted. 1: timed out. 4: an interrupted call has left the lock with this session. Other
    -- results come at once, so sleep here: waiting continues without a poller.
    if v_result not in (0, 1, 4) then
        dbms_session.sleep(1);
    end if;
    return v_result in (0, 4);
end internal_try_become_poller;

procedure internal_wait_for_wakeup(
    p_queue_id       in number,
    p_waiting_until in out timestamp,
    p_has_wakeup_queue   in out boolean
)
is
-- purpose   Record that a session waits; once recorded, wait up to a second to be woken.
-- locks     the queue row, skipped if locked; none while waiting
-- commits   never; the caller commits at once, and polls before it waits again
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    if p_waiting_until is null or p_waiting_until < v_now + numtodsinterval(2, 'second') then
        -- Record 6 seconds only, so that producers soon stop waking a killed session.
        p_waiting_until := v_now + numtodsinterval(6, 'second');
        internal_record_waiter(p_queue_id, p_waiting_until);
        return;
    end if;
    -- Dynamic SQL: the package exists only if the owner has run wakeup.sql.
    execute immediate 'begin rowq_wakeup.await(:1); end;' using p_queue_id;
exception
    when e_cancelled then
        raise;
    when others then
        -- The wake-up queue is broken or dropped: poll without it.
        p_has_wakeup_queue := false;
end internal_wait_for_wakeup;

function internal_poller_lock_number(p_queue_id in number)
return number
is
-- purpose   Return the number of a queue's poller lock; 0 if the owner may not use dbms_lock.
-- differs   this engine's own: user locks have numbers, not names
    v_count pls_integer;
begin
    -- Look up the right instead of trying it: a statement that fails to parse is parsed again each
    -- time. Roles do not count in stored code, and "execute any procedure" excludes objects of SYS.
    select count(*) into v_count
    from all_tab_privs p
    where p.table_schema = 'SYS'
      and p.table_name = 'DBMS_LOCK'
      and p.privilege = 'EXECUTE'
      and p.grantee in (sys_context('userenv', 'current_user'), 'PUBLIC');
    if v_count = 0 then
        return 0;
    end if;
    -- All applications of the database share the numbers up to 1073741823. Another application with
    -- the same number delays waiters by up to a second.
    return dbms_utility.get_hash_value(
        sys_context('userenv', 'current_user') || '.rowq.wait.' || internal_number_text(p_queue_id),
        1, 1073741823
    );
end internal_poller_lock_number;

function internal_peek_ready(p_queue_id in number, p_limit in number)
return rowq_lines
is
-- purpose   Return the next p_limit ready messages, best lane first.
    v_lanes t_lanes := internal_open_lanes_of(p_queue_id);
    v_left  pls_integer;
    v_some  t_messages;
    v_lines rowq_lines := rowq_lines();
    cursor lane_rows(p_lane in number, p_floor in number) is
        select /*+ index_rs_asc(r rowq_ready_pk) */
               r.message_id, r.lane, r.attempt, r.seq, null as group_key, 0 as is_without_slot,
               null as is_cancelled
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.lane = p_lane
          and r.seq >= p_floor
        order by r.queue_id, r.lane, r.seq, r.message_id;
begin
    for i in 1 .. v_lanes.count loop
        exit when v_lines.count >= p_limit;
        v_left := p_limit - v_lines.count;
        open lane_rows(v_lanes(i).lane, v_lanes(i).floor_seq);
        fetch lane_rows bulk collect into v_some limit v_left;
        close lane_rows;
        for j in 1 .. v_some.count loop
            v_lines.extend;
            v_lines(v_lines.last) := rowq_line(
                v_lines.last, v_some(j).message_id, v_some(j).lane, v_some(j).attempt, null, null
            );
        end loop;
    end loop;
    return v_lines;
end internal_peek_ready;
