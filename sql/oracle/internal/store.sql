-- Store: new messages, dedup keys, and delayed messages that are due.
--
-- A message is one row of message and one row of the place where it waits: ready, delayed, grouped
-- or blocked. A batch takes a few statements, not a few for each message. A dedup key is a row of
-- dedup while its message is unfinished. A producer of the same key waits for that row and gets the
-- first message's id back as a duplicate. promote moves what is due from delayed to ready, or into
-- its group.
--
--   enqueue, enqueue_batch, store_bound, ... -> store -> reserve_dedup_keys, store_group_waiting
--   reserve_dedup_keys -> dedup_order
--   join_groups, pop_dead -> dedup_order
--   retry_later -> push_delayed -> push_ready
--   release, reset, pass_group_slot, ... -> push_ready
--   dequeue, maintain_queue -> promote -> promote_group_waiting, push_ready
--   promote_group_waiting -> postpone
--
-- Writes dedup, delayed, expiry, group_waiting, message, ready.

procedure internal_store(
    p_queue_id   in number,
    p_queue_name in varchar2,
    p_new        in out nocopy t_new_messages
)
is
-- purpose   Store messages that are already checked in the places where they belong.
-- locks     new rows; with dedup keys, waits for open enqueues of the same keys, in key order; with
--           group keys as internal_join_groups; with predecessors as internal_block_batch
-- errors    RQ701 RQ711
    -- ORA-02291 (parent key not found): the queue was dropped while this insert waited for it.
    e_no_queue exception;
    pragma exception_init(e_no_queue, -2291);
    v_fresh      t_numbers;
    v_ready      t_numbers;
    v_later      t_numbers;
    v_expiring   t_numbers;
    v_is_waiting boolean := false;
begin
    internal_reserve_dedup_keys(p_queue_id, p_new);
    for i in 1 .. p_new.count loop
        if p_new(i).outcome = 'enqueued' then
            v_fresh(i) := i;
            v_is_waiting := v_is_waiting or p_new(i).predecessor_ids is not null;
            if p_new(i).expires_at is not null then
                v_expiring(i) := i;
            end if;
            if p_new(i).due_at is null then
                v_ready(i) := i;
            else
                v_later(i) := i;
            end if;
        end if;
    end loop;
    internal_open_lanes_for(p_queue_id, p_new);

    forall i in indices of v_fresh
        insert into rowq_message (
            queue_id, message_id, max_attempts, lane, seq, enqueued_at, due_at, message_type,
            dedup_key, group_key, expires_at, headers, body, body_binary
        )
        values (
            p_queue_id, p_new(i).message_id, p_new(i).max_attempts, p_new(i).lane, p_new(i).seq,
            p_new(i).enqueued_at, p_new(i).due_at, p_new(i).message_type,
            p_new(i).dedup_key, p_new(i).group_key, p_new(i).expires_at, p_new(i).headers,
            p_new(i).body, p_new(i).body_binary
        );
    forall i in indices of v_expiring
        insert into rowq_expiry (queue_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            p_queue_id,
            least(p_new(i).expires_at, p_new(i).enqueued_at + numtodsinterval(1, 'day')),
            rowq_claim_seq.nextval, p_new(i).message_id, p_new(i).lane, p_new(i).seq
        );
    if v_is_waiting then
        internal_block_batch(p_queue_id, p_new, v_ready, v_later);
    end if;
    internal_store_group_waiting(p_queue_id, p_new, v_ready);
    forall i in indices of v_ready
        insert into rowq_ready (queue_id, lane, seq, message_id)
        values (p_queue_id, p_new(i).lane, p_new(i).seq, p_new(i).message_id);
    forall i in indices of v_later
        insert into rowq_delayed (queue_id, due_at, message_id, lane, group_key)
        values (
            p_queue_id, p_new(i).due_at, p_new(i).message_id, p_new(i).lane, p_new(i).group_key
        );
exception
    when e_no_queue then
        internal_refuse_queue(p_queue_name);
end internal_store;

procedure internal_reserve_dedup_keys(p_queue_id in number, p_new in out nocopy t_new_messages)
is
-- purpose   Give each message an id and reserve its dedup key; where another message has the key, return that one's id.
-- locks     new dedup rows; waits for open enqueues of the same keys, in key order; the bucket of a
--           schedule's key, passed over when locked
    c_most_tries constant pls_integer := 100;
    v_count      constant pls_integer := p_new.count;
    v_ids        t_numbers;
    v_order      t_positions;
    v_at         varchar2(4000 char);
    v_key        raw(800);
    v_has_bucket boolean;
    v_tries      pls_integer;
    v_other      rowq_dedup.message_id%type;
begin
    -- One statement takes all numbers, because each statement is a change from PL/SQL to SQL.
    select rowq_message_seq.nextval
    bulk collect into v_ids
    from dual
    connect by level <= v_count;

    for i in 1 .. v_count loop
        p_new(i).outcome := 'enqueued';
        p_new(i).message_id := v_ids(i);
        if p_new(i).dedup_key is not null then
            v_order(internal_dedup_order(p_new(i).dedup_key, i)) := i;
        end if;
    end loop;

    -- Reserve the keys in key order, so that batches with the same keys cannot wait for each other.
    v_at := v_order.first;
    while v_at is not null loop
        v_key := utl_raw.cast_to_raw(p_new(v_order(v_at)).dedup_key);
        if instr(p_new(v_order(v_at)).dedup_key, 'schedule:') = 1 then
            -- This session goes on without the bucket: it may wait for the key.
            v_has_bucket := internal_lock_bucket(p_queue_id, v_key);
        end if;
        v_tries := 0;
        loop
            begin
                insert into rowq_dedup (queue_id, dedup_key, message_id)
                values (p_queue_id, v_key, p_new(v_order(v_at)).message_id);
                exit;
            exception
                when dup_val_on_index then
                    -- Another producer had the key before, or has committed it while this one
                    -- waited for it.
                    select max(d.message_id) into v_other
                    from rowq_dedup d
                    where d.queue_id = p_queue_id
                      and d.dedup_key = v_key;
                    if v_other is not null then
                        p_new(v_order(v_at)).message_id := v_other;
                        p_new(v_order(v_at)).outcome := 'duplicate';
                        exit;
                    end if;
                    -- The key is free by now, so try again. The tries are limited for a
                    -- serializable transaction, which never sees the row that it collides with.
                    v_tries := v_tries + 1;
                    if v_tries = c_most_tries then
                        raise;
                    end if;
            end;
        end loop;
        v_at := v_order.next(v_at);
    end loop;
end internal_reserve_dedup_keys;

function internal_dedup_order(p_dedup_key in varchar2, p_number in number)
return varchar2
is
-- purpose   Return the place of a dedup key among others, as an index of t_positions; p_number tells equal keys apart.
-- differs   no such helper elsewhere: there no session chooses the order of texts
    v_hex varchar2(1600 char);
begin
    -- Use digits only: two sessions that reserve the same keys must do so in the same order, and
    -- each session's NLS_SORT decides where letters stand.
    v_hex := rawtohex(utl_raw.cast_to_raw(p_dedup_key));
    return translate(v_hex, 'ABCDEF', '999999')
        || translate(v_hex, '0123456789ABCDEF', '0000000000123456')
        || to_char(p_number, 'fm0000000000000000000');
end internal_dedup_order;

procedure internal_store_group_waiting(
    p_queue_id in number,
    p_new      in t_new_messages,
    p_ready    in out nocopy t_numbers
)
is
-- purpose   Let new messages of groups be ready, or wait behind others; p_ready has the places of those that are due, and keeps those that are ready.
-- locks     as internal_join_groups
-- differs   PostgreSQL joins groups in enqueue and enqueue_batch
    v_messages t_messages;
    v_waiting  t_numbers;
    v_place    pls_integer := p_ready.first;
begin
    while v_place is not null loop
        if p_new(v_place).group_key is not null then
            v_messages(v_place).message_id := p_new(v_place).message_id;
            v_messages(v_place).lane := p_new(v_place).lane;
            v_messages(v_place).group_key := p_new(v_place).group_key;
        end if;
        v_place := p_ready.next(v_place);
    end loop;
    internal_join_groups(p_queue_id, v_messages, v_waiting);

    v_place := v_waiting.first;
    while v_place is not null loop
        p_ready.delete(v_place);
        v_place := v_waiting.next(v_place);
    end loop;
end internal_store_group_waiting;

procedure internal_push_delayed(
    p_queue_id in number,
    p_messages in t_messages,
    p_due_at   in t_timestamps,
    p_error    in clob
)
is
-- purpose   Let messages wait for their time; those that are due are ready at once.
-- locks     message rows, waited for; new delayed, ready and expiry rows
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_later      t_messages;
    v_timestamps t_timestamps;
    v_due        t_messages;
    v_message    t_message;
    v_seqs       t_numbers;
begin
    internal_record_error(p_queue_id, p_messages, p_error, true);
    for i in 1 .. p_messages.count loop
        v_message := p_messages(i);
        v_message.lane := trunc(v_message.lane / 2) * 2 + 1;
        if p_due_at(i) > v_now then
            v_later(v_later.count + 1) := v_message;
            v_timestamps(v_later.count) := p_due_at(i);
        else
            v_due(v_due.count + 1) := v_message;
        end if;
    end loop;

    forall i in 1 .. v_later.count
        insert into rowq_delayed (queue_id, due_at, message_id, lane, attempt)
        values (
            p_queue_id, v_timestamps(i), v_later(i).message_id, v_later(i).lane, v_later(i).attempt
        );
    forall i in 1 .. v_later.count
        update rowq_message m
        set m.due_at = v_timestamps(i)
        where m.queue_id = p_queue_id
          and m.message_id = v_later(i).message_id;
    internal_record_expiry(p_queue_id, v_later, v_seqs);
    internal_push_ready(p_queue_id, v_due);
end internal_push_delayed;

procedure internal_push_ready(p_queue_id in number, p_messages in t_messages)
is
-- purpose   Append messages to lanes, in their order, under new places.
-- locks     new ready and expiry rows
    v_seq    constant number := internal_microseconds(sys_extract_utc(systimestamp));
    v_places t_numbers;
begin
    for i in 1 .. p_messages.count loop
        v_places(i) := v_seq + i;
    end loop;
    forall i in 1 .. p_messages.count
        insert into rowq_ready (queue_id, lane, seq, message_id, attempt)
        values (
            p_queue_id, p_messages(i).lane, v_places(i), p_messages(i).message_id,
            p_messages(i).attempt
        );
    internal_record_expiry(p_queue_id, p_messages, v_places);
end internal_push_ready;

function internal_promote(p_queue_id in number, p_limit in number)
return number
is
-- purpose   Move up to p_limit due messages to the tails of their lanes, or into their groups, earliest first.
-- locks     delayed rows, passing over locked ones; new ready rows; as
--           internal_promote_group_waiting
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue_id, -2 /* delayed */));
    v_probe    rowq_delayed.message_id%type;
    v_locked   t_locked_rows;
    v_messages t_messages;
    v_joined   number;
    cursor due is
        select /*+ index_rs_asc(d rowq_delayed_pk) */ d.message_id
        from rowq_delayed d
        where d.queue_id = p_queue_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.queue_id, d.due_at, d.message_id;
    cursor due_rows is
        select /*+ index_rs_asc(d rowq_delayed_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.queue_id = p_queue_id
          and d.due_at >= v_since
          and d.due_at <= v_now
        order by d.queue_id, d.due_at, d.message_id
        for update skip locked;
begin
    -- Look without a lock first, so that a call that finds nothing begins no transaction.
    open due;
    fetch due into v_probe;
    close due;
    if v_probe is null then
        return 0;
    end if;

    open due_rows;
    fetch due_rows bulk collect into v_locked limit p_limit;
    close due_rows;
    internal_delete_delayed(v_locked, v_messages);
    internal_promote_group_waiting(p_queue_id, v_messages, v_joined);
    internal_push_ready(p_queue_id, v_messages);
    return v_messages.count + v_joined;
end internal_promote;

procedure internal_promote_group_waiting(
    p_queue_id in number,
    p_messages in out nocopy t_messages,
    p_joined   out number
)
is
-- purpose   Let due messages join their groups: p_messages are afterwards those for the caller to make ready, p_joined is how many of the others wait in their groups now. What must not wait for a producer is due again in half a second.
-- locks     as internal_take_group_slot and internal_postpone; new group_waiting rows
-- differs   no such helper on PostgreSQL: part of internal_promote
    v_key      raw(800);
    v_has_slot boolean;
    v_ready    t_messages;
    v_late     t_messages;
begin
    p_joined := 0;
    for i in 1 .. p_messages.count loop
        v_has_slot := true;
        if p_messages(i).group_key is not null then
            v_key := utl_raw.cast_to_raw(p_messages(i).group_key);
            v_has_slot := internal_take_group_slot(p_queue_id, v_key, false);
        end if;
        if v_has_slot is null then
            v_late(v_late.count + 1) := p_messages(i);
        elsif v_has_slot then
            v_ready(v_ready.count + 1) := p_messages(i);
        else
            insert into rowq_group_waiting (queue_id, group_key, message_id, lane)
            values (p_queue_id, v_key, p_messages(i).message_id, p_messages(i).lane);
            p_joined := p_joined + 1;
        end if;
    end loop;
    p_messages := v_ready;
    internal_postpone(p_queue_id, v_late);
end internal_promote_group_waiting;

procedure internal_postpone(p_queue_id in number, p_messages in t_messages)
is
-- purpose   Let due messages that cannot join their groups yet be due again in half a second; those whose rows a producer holds stay due.
-- locks     message rows, passing over locked ones; new delayed rows
-- differs   no such helper elsewhere: part of internal_promote_group_waiting
    v_later   constant timestamp(6) :=
        sys_extract_utc(systimestamp) + numtodsinterval(0.5, 'second');
    v_wanted     rowq_ids := internal_ids_of(p_messages);
    v_locked     rowq_ids;
    v_held       rowq_ids;
    v_ids        t_numbers;
    v_due_ats    t_timestamps;
    v_own        t_positions;
    v_timestamps t_timestamps;
    v_text       varchar2(50 char);
begin
    if p_messages.count = 0 then
        return;
    end if;
    -- A producer that has named one of them as a predecessor holds its row, and nobody waits for it
    -- here.
    internal_lock_messages(p_queue_id, v_wanted, v_locked, v_held);
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.due_at
    bulk collect into v_ids, v_due_ats
    from table(v_held) a
    join rowq_message m
      on m.queue_id = p_queue_id
     and m.message_id = a.column_value;
    for i in 1 .. v_ids.count loop
        v_own(internal_number_text(v_ids(i))) := i;
    end loop;
    for i in 1 .. p_messages.count loop
        v_text := internal_number_text(p_messages(i).message_id);
        v_timestamps(i) := case
            when v_own.exists(v_text) then v_due_ats(v_own(v_text))
            else v_later
        end;
    end loop;

    forall i in 1 .. p_messages.count
        insert into rowq_delayed (queue_id, due_at, message_id, lane, attempt, group_key)
        values (
            p_queue_id, v_timestamps(i), p_messages(i).message_id, p_messages(i).lane,
            p_messages(i).attempt, p_messages(i).group_key
        );
    forall i in 1 .. v_locked.count
        update rowq_message m
        set m.due_at = v_later
        where m.queue_id = p_queue_id
          and m.message_id = v_locked(i);
end internal_postpone;
