-- Groups: at most group_limit messages of one group_key in work.
--
-- A message needs a slot, a row of group_slot, to be ready, leased or delayed for a retry. A
-- message without a slot waits in group_waiting, which dequeue does not read. The call that ends a
-- message passes its slot to the group's next message, or deletes it, in the same transaction. So
-- slots cannot leak, and groups take turns. A producer that finds the group full locks its slots
-- until its transaction ends, so that the last slot is not deleted before that. No worker waits
-- for a producer: if a slot cannot be passed on now, a row of deferred leaves it to maintain.
--
-- Oracle has no shared row locks, and an insert of a duplicate key waits without a timeout. So a
-- worker that adds a slot tries to lock a row of lock_bucket first, and a producer that can lock no
-- slot adds a row of deferred.
--
--   alter_queue -> defer_group_checks -> push_deferred
--   reset, store_group_waiting -> join_groups -> take_group_slot
--   promote_group_waiting, try_unblock -> take_group_slot -> read_group, lock_slots, lock_bucket,
--       add_slot, push_deferred
--   reserve_dedup_keys, can_send -> lock_bucket
--   release_links -> release_group_slots -> pass_group_slot, push_deferred
--   try_deferred -> pass_group_slot -> read_group, lock_slot, pop_next_waiting
--   pop_expired, pop_waiting -> pop_group_waiting
--   dequeue -> run_deferred_groups -> read_group
--   try_deferred -> add_group_slots -> read_group, lock_bucket, add_slot, release_group_slots,
--       lock_slots
--
-- Writes group_waiting, group_slot, deferred. Only reads lock_bucket, queue.

procedure internal_defer_group_checks(p_queue_id in number)
is
-- purpose   Defer a check for new slots for each group in which messages wait.
-- locks     new deferred rows
    -- v_from is the least key above the last group's: that key and a zero byte.
    v_from raw(801) := hextoraw('00');
    v_key  rowq_group_waiting.group_key%type;
    cursor next_rows is
        select /*+ index_rs_asc(g rowq_group_waiting_pk) */ g.group_key
        from rowq_group_waiting g
        where g.queue_id = p_queue_id
          and g.group_key >= v_from
        order by g.queue_id, g.group_key, g.message_id;
begin
    -- Skip from group to group, so that not every message is read.
    loop
        v_key := null;
        open next_rows;
        fetch next_rows into v_key;
        close next_rows;
        exit when v_key is null;
        internal_push_deferred(p_queue_id, v_key, 0, 1);
        v_from := utl_raw.concat(v_key, hextoraw('00'));
    end loop;
end internal_defer_group_checks;

procedure internal_push_deferred(
    p_queue_id  in number,
    p_group_key in raw,
    p_seconds   in number,
    p_is_hint   in number
)
is
-- purpose   Defer a group's work by p_seconds, to maintain and to a dequeue that finds nothing.
-- locks     the new deferred row; the first time its lane, skipped if locked
begin
    internal_open_lanes(p_queue_id, -4 /* deferred */);
    insert into rowq_deferred (queue_id, due_at, deferred_id, group_key, is_hint)
    values (
        p_queue_id, sys_extract_utc(systimestamp) + numtodsinterval(p_seconds, 'second'),
        rowq_claim_seq.nextval, p_group_key, p_is_hint
    );
end internal_push_deferred;

procedure internal_join_groups(
    p_queue_id in number,
    p_messages in t_messages,
    p_waiting  out nocopy t_numbers
)
is
-- purpose   Let messages that have a group_key join their groups; return those that wait there.
-- locks     as internal_take_group_slot, in the order of the keys; new group_waiting rows
-- p_waiting has their positions in p_messages.
    v_order    t_positions;
    v_at       varchar2(4000 char);
    v_position pls_integer := p_messages.first;
    v_key      raw(800);
    v_full_key raw(800);
    v_is_full  boolean;
    v_keys     t_keys;
    v_behind   t_messages;
begin
    p_waiting.delete;
    while v_position is not null loop
        if p_messages(v_position).group_key is not null then
            v_order(
                internal_dedup_order(
                    p_messages(v_position).group_key, p_messages(v_position).message_id
                )
            ) := v_position;
        end if;
        v_position := p_messages.next(v_position);
    end loop;

    v_at := v_order.first;
    while v_at is not null loop
        v_position := v_order(v_at);
        v_key := utl_raw.cast_to_raw(p_messages(v_position).group_key);
        -- A full group stays full until this transaction ends.
        v_is_full := v_key = v_full_key;
        if v_is_full is null or not v_is_full then
            v_is_full := not internal_take_group_slot(p_queue_id, v_key, true);
        end if;
        if v_is_full then
            v_full_key := v_key;
            p_waiting(v_position) := v_position;
            v_keys(v_keys.count + 1) := v_key;
            v_behind(v_keys.count) := p_messages(v_position);
        end if;
        v_at := v_order.next(v_at);
    end loop;

    forall i in 1 .. v_keys.count
        insert into rowq_group_waiting (queue_id, group_key, message_id, lane)
        values (p_queue_id, v_keys(i), v_behind(i).message_id, v_behind(i).lane);
end internal_join_groups;

function internal_take_group_slot(
    p_queue_id  in number,
    p_group_key in raw,
    p_may_wait  in boolean
)
return boolean
is
-- purpose   Take a slot of a group; return false if the message has to wait.
-- locks     the group's bucket and its group_slot rows, skipping locked ones; a new group_slot row,
--           which waits for a session that adds the same; a new deferred row
-- differs   Oracle has no shared row locks: a session that can lock no slot defers a check
-- Without p_may_wait it returns null if another session may be adding the first slot.
    -- A serializable transaction never sees the slot that it collides with.
    c_most_tries constant pls_integer := 3;
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_group      t_group;
    v_locked     t_numbers;
    v_has_bucket boolean;
    v_is_taken   boolean;
begin
    for turn in 1 .. c_most_tries loop
        internal_read_group(p_queue_id, p_group_key, v_group);
        if v_group.slots.count >= v_group.group_limit then
            v_locked := internal_lock_slots(p_queue_id, p_group_key);
            if v_locked.count > 0 then
                -- No session deletes a slot that is locked until this transaction ends, so the
                -- session that ends its message sees this one, or defers the slot.
                forall i in 1 .. v_locked.count
                    update rowq_group_slot t
                    set t.joined_at = v_now
                    where t.queue_id = p_queue_id
                      and t.group_key = p_group_key
                      and t.slot_no = v_locked(i);
                return false;
            end if;
            exit;
        end if;

        -- An earlier message waits although a slot is free, and a deferred check exists for it:
        -- queue behind it. A limit above 1 keeps no order.
        exit when v_group.first_id is not null and v_group.group_limit = 1;
        v_has_bucket := internal_lock_bucket(p_queue_id, p_group_key);
        if not (v_has_bucket or p_may_wait) then
            return null;
        end if;
        v_is_taken := internal_add_slot(p_queue_id, p_group_key, v_group);
        if v_is_taken then
            return true;
        end if;
    end loop;

    -- This transaction has locked no slot, so a session that has not seen the message may delete
    -- the last one. Defer a check.
    internal_push_deferred(p_queue_id, p_group_key, 0, 1);
    return false;
end internal_take_group_slot;

procedure internal_read_group(
    p_queue_id  in number,
    p_group_key in raw,
    p_group     out nocopy t_group
)
is
-- purpose   Read a group's slots, its first waiting message and the queue's settings.
    v_found t_group_rows;
begin
    select /*+ leading(q t) use_nl(t) index(t rowq_group_slot_pk) */
           q.group_limit, q.group_pause_seconds, q.waiting_until,
           (
               select min(g.message_id)
               from rowq_group_waiting g
               where g.queue_id = p_queue_id
                 and g.group_key = p_group_key
           ) as first_id,
           t.slot_no
    bulk collect into v_found
    from rowq_queue q
    left join rowq_group_slot t
      on t.queue_id = q.queue_id
     and t.group_key = p_group_key
    where q.queue_id = p_queue_id;

    p_group.slots.delete;
    for i in 1 .. v_found.count loop
        p_group.group_limit := v_found(i).group_limit;
        p_group.pause_seconds := v_found(i).pause_seconds;
        p_group.waiting_until := v_found(i).waiting_until;
        p_group.first_id := v_found(i).first_id;
        if v_found(i).slot_no is not null then
            p_group.slots(v_found(i).slot_no) := v_found(i).slot_no;
        end if;
    end loop;
end internal_read_group;

function internal_lock_slots(p_queue_id in number, p_group_key in raw)
return t_numbers
is
-- purpose   Lock the unlocked slots of a group; return their numbers.
-- locks     group_slot rows, skipping locked ones
    -- ORA-08177: the transaction is serializable, and a message has joined the group since it
    -- began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_most constant pls_integer := 100;
    v_locked t_numbers;
    cursor slot_rows is
        select /*+ index_rs_asc(t rowq_group_slot_pk) no_batch_table_access_by_rowid(t) */
               t.slot_no
        from rowq_group_slot t
        where t.queue_id = p_queue_id
          and t.group_key = p_group_key
        order by t.queue_id, t.group_key, t.slot_no
        for update skip locked;
begin
    open slot_rows;
    fetch slot_rows bulk collect into v_locked limit c_most;
    close slot_rows;
    return v_locked;
exception
    when e_not_serial then
        v_locked.delete;
        return v_locked;
end internal_lock_slots;

function internal_lock_bucket(p_queue_id in number, p_key in raw)
return boolean
is
-- purpose   Lock the bucket of a group, or of a schedule's dedup key; return false if it is locked.
-- locks     a row of lock_bucket, skipped if locked
-- differs   no such helper elsewhere: there the wait of an insert has a timeout
    -- ORA-08177: the transaction is serializable, and another session has locked the row since it
    -- began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_buckets   constant pls_integer := 64;
    v_bucket_no constant rowq_lock_bucket.bucket_no%type :=
        dbms_utility.get_hash_value(rawtohex(p_key), 0, c_buckets);
    v_held    rowq_lock_bucket.bucket_no%type;
    cursor bucket_row is
        select d.bucket_no
        from rowq_lock_bucket d
        where d.queue_id = p_queue_id
          and d.bucket_no = v_bucket_no
        for update skip locked;
begin
    open bucket_row;
    fetch bucket_row into v_held;
    close bucket_row;
    return v_held is not null;
exception
    when e_not_serial then
        return false;
end internal_lock_bucket;

function internal_add_slot(
    p_queue_id  in number,
    p_group_key in raw,
    p_group     in t_group
)
return boolean
is
-- purpose   Add the first missing slot of a group; return false if another session was first.
-- locks     the new group_slot row; waits for a session that adds the same one
    v_slot_no pls_integer := 1;
    v_newest  rowq_queue.group_limit%type;
begin
    while p_group.slots.exists(v_slot_no) loop
        v_slot_no := v_slot_no + 1;
    end loop;
    insert into rowq_group_slot (queue_id, group_key, slot_no)
    values (p_queue_id, p_group_key, v_slot_no);

    -- The insert may have waited, so read the limit again. Every limit allows one slot.
    if p_group.group_limit = 1 then
        return true;
    end if;
    select q.group_limit into v_newest
    from rowq_queue q
    where q.queue_id = p_queue_id;
    if v_newest >= p_group.group_limit then
        return true;
    end if;
    delete from rowq_group_slot t
    where t.queue_id = p_queue_id
      and t.group_key = p_group_key
      and t.slot_no = v_slot_no;
    return false;
exception
    when dup_val_on_index then
        return false;
end internal_add_slot;

procedure internal_release_group_slots(p_queue_id in number, p_group_keys in t_keys)
is
-- purpose   Pass on the slots of ended messages, one for each key; defer those that cannot be passed now.
-- locks     as internal_pass_group_slot; new deferred rows
    v_is_left       boolean;
    v_pause_seconds number;
begin
    for i in 1 .. p_group_keys.count loop
        internal_pass_group_slot(p_queue_id, p_group_keys(i), false, v_is_left, v_pause_seconds);
        if v_is_left then
            internal_push_deferred(p_queue_id, p_group_keys(i), v_pause_seconds, 0);
        end if;
    end loop;
end internal_release_group_slots;

procedure internal_pass_group_slot(
    p_queue_id      in number,
    p_group_key     in raw,
    p_is_over       in boolean,
    p_is_left       out boolean,
    p_pause_seconds out number
)
is
-- purpose   Pass one slot of a group to its next message, or delete it.
-- locks     group_waiting and group_slot rows, skipping locked ones; new ready rows
    v_group   t_group;
    v_slot_no number;
    v_held_no number;
    v_next    t_messages;
begin
    p_is_left := false;
    internal_read_group(p_queue_id, p_group_key, v_group);
    p_pause_seconds := v_group.pause_seconds;
    if v_group.pause_seconds > 0 and not p_is_over then
        p_is_left := true;
        return;
    end if;

    -- The limit was lowered: delete a slot above it, if another slot stays. A slot that can be
    -- locked is not being deleted by another session.
    if v_group.slots.last > v_group.group_limit then
        v_held_no := internal_lock_slot(
            p_queue_id, p_group_key, v_group, 1, v_group.group_limit
        );
        if v_held_no is not null then
            v_slot_no := internal_lock_slot(
                p_queue_id, p_group_key, v_group, v_group.group_limit + 1, v_group.slots.last
            );
        end if;
    end if;
    if v_slot_no is null and v_group.first_id is null then
        -- The group is empty. If a slot can be locked, no producer is joining, and those that were
        -- have committed: read once more, in a new statement.
        v_slot_no := internal_lock_slot(
            p_queue_id, p_group_key, v_group, 1, v_group.slots.last
        );
        if v_slot_no is null then
            p_is_left := true;
            return;
        end if;
        internal_read_group(p_queue_id, p_group_key, v_group);
        if v_group.first_id is not null then
            v_slot_no := null;
        end if;
    end if;
    if v_slot_no is not null then
        delete from rowq_group_slot t
        where t.queue_id = p_queue_id
          and t.group_key = p_group_key
          and t.slot_no = v_slot_no;
        return;
    end if;

    v_next := internal_pop_next_waiting(p_queue_id, p_group_key, v_group);
    p_is_left := v_next.count = 0;
    internal_push_ready(p_queue_id, v_next);
    if v_next.count > 0 then
        internal_wake_waiters(p_queue_id, v_group.waiting_until);
    end if;
end internal_pass_group_slot;

function internal_lock_slot(
    p_queue_id  in number,
    p_group_key in raw,
    p_group     in t_group,
    p_from      in number,
    p_to        in number
)
return number
is
-- purpose   Lock the highest unlocked slot of a group from p_from to p_to; return its number, or null.
-- locks     a group_slot row, skipping locked ones
    -- ORA-08177: the transaction is serializable, and a message has joined the group since it
    -- began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_slot_no number := p_group.slots.last;
    v_held    rowq_group_slot.slot_no%type;
    cursor slot_row is
        select t.slot_no
        from rowq_group_slot t
        where t.queue_id = p_queue_id
          and t.group_key = p_group_key
          and t.slot_no = v_slot_no
        for update skip locked;
begin
    while v_held is null and v_slot_no >= p_from loop
        if v_slot_no <= p_to then
            open slot_row;
            fetch slot_row into v_held;
            close slot_row;
        end if;
        v_slot_no := p_group.slots.prior(v_slot_no);
    end loop;
    return v_held;
exception
    when e_not_serial then
        return null;
end internal_lock_slot;

function internal_pop_next_waiting(
    p_queue_id  in number,
    p_group_key in raw,
    p_group     in t_group
)
return t_messages
is
-- purpose   Remove the next unlocked message that waits in a group, and return it.
-- locks     a group_waiting row, skipping locked ones
    -- ORA-08177: the transaction is serializable, and another session has locked the row since it
    -- began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_greatest constant number := 9999999999999999999;
    -- With a limit of 1 no other message is taken: a message that is being cancelled may stay, and
    -- must not be overtaken.
    v_last_id  constant number := case
        when p_group.group_limit = 1 then p_group.first_id
        else c_greatest
    end;
    v_next     t_messages;
    v_id       rowq_group_waiting.message_id%type;
    v_lane     rowq_group_waiting.lane%type;
    cursor next_rows is
        select /*+ index_rs_asc(g rowq_group_waiting_pk) no_batch_table_access_by_rowid(g) */
               g.message_id, g.lane
        from rowq_group_waiting g
        where g.queue_id = p_queue_id
          and g.group_key = p_group_key
          and g.message_id between p_group.first_id and v_last_id
        order by g.queue_id, g.group_key, g.message_id
        for update skip locked;
begin
    begin
        open next_rows;
        fetch next_rows into v_id, v_lane;
        close next_rows;
    exception
        when e_not_serial then
            return v_next;
    end;
    if v_id is null then
        return v_next;
    end if;

    delete from rowq_group_waiting g
    where g.queue_id = p_queue_id
      and g.group_key = p_group_key
      and g.message_id = v_id;
    -- Another session may have deleted the row since the cursor was opened.
    if sql%rowcount = 0 then
        return v_next;
    end if;
    v_next(1).message_id := v_id;
    v_next(1).lane := v_lane;
    v_next(1).attempt := 0;
    return v_next;
end internal_pop_next_waiting;

procedure internal_pop_group_waiting(
    p_queue_id in number,
    p_wanted   in t_messages,
    p_messages in out nocopy t_messages
)
is
-- purpose   Remove the unlocked ones of the wanted messages from their groups, and append them.
-- locks     group_waiting rows, skipping locked ones
    v_key  raw(800);
    v_id   rowq_group_waiting.message_id%type;
    v_lane rowq_group_waiting.lane%type;
    v_next pls_integer := p_messages.count;
    cursor waiting_row is
        select g.lane
        from rowq_group_waiting g
        where g.queue_id = p_queue_id
          and g.group_key = v_key
          and g.message_id = v_id
        for update skip locked;
begin
    for i in 1 .. p_wanted.count loop
        v_lane := null;
        if p_wanted(i).group_key is not null then
            v_key := utl_raw.cast_to_raw(p_wanted(i).group_key);
            v_id := p_wanted(i).message_id;
            open waiting_row;
            fetch waiting_row into v_lane;
            close waiting_row;
        end if;
        if v_lane is not null then
            delete from rowq_group_waiting g
            where g.queue_id = p_queue_id
              and g.group_key = v_key
              and g.message_id = v_id;
            -- Another session may have deleted the row since the cursor was opened.
            continue when sql%rowcount = 0;
            v_next := v_next + 1;
            p_messages(v_next).message_id := v_id;
            p_messages(v_next).lane := v_lane;
            p_messages(v_next).attempt := 0;
            p_messages(v_next).is_without_slot := 1;
        end if;
    end loop;
end internal_pop_group_waiting;

function internal_run_deferred_groups(p_queue_id in number, p_limit in number)
return number
is
-- purpose   Run up to p_limit deferred group checks for a dequeue that found nothing.
-- locks     none if it returns 0; otherwise a deferred row, skipped if locked, and as
--           internal_pass_group_slot and internal_add_group_slots
-- differs   elsewhere a dequeue runs all deferred work. Here a predecessor's row would stay locked
--           until the transaction ends, and fail_now would wait for it
-- It returns how many groups have one more ready message.
    type t_item is record (
        due_at      rowq_deferred.due_at%type,
        deferred_id rowq_deferred.deferred_id%type,
        group_key   rowq_deferred.group_key%type,
        is_hint     rowq_deferred.is_hint%type
    );
    type t_items is table of t_item index by pls_integer;
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue_id, -4 /* deferred */));
    v_items     t_items;
    v_due_at    rowq_deferred.due_at%type;
    v_id        rowq_deferred.deferred_id%type;
    v_locked_id rowq_deferred.deferred_id%type;
    v_group     t_group;
    v_first_id  rowq_group_waiting.message_id%type;
    v_is_solved boolean;
    v_is_ready  boolean;
    v_ready     pls_integer := 0;
    cursor due is
        select /*+ index_rs_asc(r rowq_deferred_pk) no_batch_table_access_by_rowid(r) */
               r.due_at, r.deferred_id, r.group_key, r.is_hint
        from rowq_deferred r
        where r.queue_id = p_queue_id
          and r.due_at >= v_since
          and r.due_at <= v_now
          and r.group_key is not null
          and exists (
              select /*+ no_unnest index(g rowq_group_waiting_pk) */ null
              from rowq_group_waiting g
              where g.queue_id = r.queue_id
                and g.group_key = r.group_key
          )
        order by r.queue_id, r.due_at, r.deferred_id;
    cursor item_row is
        select r.deferred_id
        from rowq_deferred r
        where r.queue_id = p_queue_id
          and r.due_at = v_due_at
          and r.deferred_id = v_id
        for update skip locked;
begin
    open due;
    fetch due bulk collect into v_items limit p_limit;
    close due;
    for i in 1 .. v_items.count loop
        internal_read_group(p_queue_id, v_items(i).group_key, v_group);
        v_first_id := v_group.first_id;
        -- Roll back what makes no message ready, so that a caller that got nothing and stays in its
        -- transaction holds no locks.
        savepoint rowq_deferred_item;
        v_is_ready := false;
        v_due_at := v_items(i).due_at;
        v_id := v_items(i).deferred_id;
        v_locked_id := null;
        open item_row;
        fetch item_row into v_locked_id;
        close item_row;
        if v_locked_id is not null then
            v_is_solved := internal_try_deferred(
                p_queue_id, v_items(i).group_key, null, null, v_items(i).is_hint
            );
            if v_is_solved then
                delete from rowq_deferred r
                where r.queue_id = p_queue_id
                  and r.due_at = v_due_at
                  and r.deferred_id = v_id;
                v_is_ready := sql%rowcount = 1;
                -- If a message is ready now, it was the first waiting one.
                internal_read_group(p_queue_id, v_items(i).group_key, v_group);
                v_is_ready := v_is_ready and v_first_id <> coalesce(v_group.first_id, 0);
            end if;
        end if;
        if v_is_ready then
            v_ready := v_ready + 1;
        else
            rollback to savepoint rowq_deferred_item;
        end if;
    end loop;
    return v_ready;
end internal_run_deferred_groups;

function internal_add_group_slots(p_queue_id in number, p_group_key in raw)
return boolean
is
-- purpose   Add the slots that the limit allows a group; return false to retry.
-- locks     as the helpers that it calls; new group_slot rows
    v_group      t_group;
    v_keys       t_keys;
    v_locked     t_numbers;
    v_has_bucket boolean;
    v_is_taken   boolean;
begin
    v_keys(1) := p_group_key;
    loop
        internal_read_group(p_queue_id, p_group_key, v_group);
        if v_group.first_id is null then
            return true;
        end if;
        exit when v_group.slots.count >= v_group.group_limit;
        -- Without the bucket a producer may be adding the slot, and a worker does not wait for it.
        v_has_bucket := internal_lock_bucket(p_queue_id, p_group_key);
        if not v_has_bucket then
            return false;
        end if;
        v_is_taken := internal_add_slot(p_queue_id, p_group_key, v_group);
        if not v_is_taken then
            return false;
        end if;
        internal_release_group_slots(p_queue_id, v_keys);
    end loop;

    -- A slot that can be locked is not being deleted, and the session that ends its message sees
    -- the waiting messages: they are committed.
    v_locked := internal_lock_slots(p_queue_id, p_group_key);
    return v_locked.count > 0;
end internal_add_group_slots;
