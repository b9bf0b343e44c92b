-- Cancel: cancelling by a caller, expiry, and finding a message.
--
-- A waiting message is deleted where it waits and ends as cancelled or expired. If a message is
-- leased, the cancel is recorded in its claim: the heartbeat returns it, and the call that returns
-- the message ends it. A message that expires has rows in expiry. Each call that makes it ready or
-- moves it adds a row with its position, so maintain finds due messages by key, and deletes a row
-- whose message it does not find. A locked message is skipped and retried.
--
-- alter_message locks the row where a message waits, then its message row. It rewrites a ready row
-- even if only the message row changes, so that a serializable transaction with an older snapshot
-- fails with ORA-08177 and does not deliver the old body.
--
--   cancel -> record_cancels
--   cancel, cancel_many -> pop_waiting -> delete_delayed, delete_ready, rest_of_ids
--   purge_waiting, promote -> delete_delayed
--   purge_ready, pop_ready -> delete_ready
--   alter_message -> lock_waiting, alter_waiting -> record_expiry
--   reset, push_delayed, push_ready -> record_expiry
--   get_message, get_history, read_result -> locate_messages
--   explain_message -> locate_messages, explain_blocked, explain_ready, add_reason
--   explain_blocked -> locate_messages, explain_group, add_reason
--   explain_group, explain_ready -> add_reason
--   maintain_queue -> expire -> pop_expired
--   pop_expired -> lock_expiring, delete_ready, delete_delayed
--
-- Writes claim, delayed, expiry, leased, ready. Only reads blocked, dead, finished, group_waiting,
-- message.

procedure internal_record_cancels(
    p_queue_id in number,
    p_ids      in rowq_ids,
    p_recorded out nocopy rowq_ids,
    p_rest     out nocopy rowq_ids
)
is
-- purpose   Record a cancel in the claims that hold these messages, in p_recorded; p_rest are the others.
-- locks     claim rows, skipping locked ones; then leased rows
    c_most constant pls_integer := 10000;
    v_claim_ids t_numbers;
    v_positions    t_numbers;
    v_held_ids  t_numbers;
    v_claims    rowq_ids := rowq_ids();
    v_row_ids   t_row_ids;
    v_locked    t_numbers;
    v_known     t_positions;
    v_of        t_numbers;
    v_at        t_numbers;
    v_ids       t_numbers;
    v_next      pls_integer := 0;
    cursor claim_rows is
        select /*+ leading(a@asked c) use_nl(c) index(c rowq_claim_pk) */ c.rowid, c.claim_id
        from rowq_claim c
        where c.queue_id = p_queue_id
          and c.claim_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(v_claims) a
          )
        for update skip locked;
begin
    p_recorded := rowq_ids();
    p_rest := p_ids;
    -- Find the claims without locks, to lock only those that hold one of the messages. Begin before
    -- the floor: a claim that committed late may hold one.
    select /*+ leading(l a@asked) use_hash(a@asked) index_rs_asc(l rowq_leased_pk) */
           l.claim_id, l.place, l.message_id
    bulk collect into v_claim_ids, v_positions, v_held_ids
    from rowq_leased l
    where l.queue_id = p_queue_id
      and l.message_id in (
          select /*+ qb_name(asked) unnest */ a.column_value
          from table(p_ids) a
      );
    for i in 1 .. v_claim_ids.count loop
        if not v_known.exists(internal_number_text(v_claim_ids(i))) then
            v_known(internal_number_text(v_claim_ids(i))) := i;
            v_claims.extend;
            v_claims(v_claims.last) := v_claim_ids(i);
        end if;
    end loop;
    if v_claims.count = 0 then
        return;
    end if;

    open claim_rows;
    fetch claim_rows bulk collect into v_row_ids, v_locked limit c_most;
    close claim_rows;
    v_known.delete;
    for i in 1 .. v_locked.count loop
        v_known(internal_number_text(v_locked(i))) := i;
    end loop;
    for i in 1 .. v_claim_ids.count loop
        if v_known.exists(internal_number_text(v_claim_ids(i))) then
            v_next := v_next + 1;
            v_of(v_next) := v_claim_ids(i);
            v_at(v_next) := v_positions(i);
            v_ids(v_next) := v_held_ids(i);
        end if;
    end loop;

    forall i in 1 .. v_row_ids.count
        update rowq_claim c
        set c.has_cancels = 1
        where c.rowid = v_row_ids(i);
    forall i in 1 .. v_ids.count
        update rowq_leased l
        set l.is_cancelled = 1
        where l.queue_id = p_queue_id
          and l.claim_id = v_of(i)
          and l.place = v_at(i)
          and l.message_id = v_ids(i);
    -- A message that ended before its claim was locked is not in it any more.
    v_known.delete;
    for i in 1 .. v_ids.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_known(internal_number_text(v_ids(i))) := i;
            p_recorded.extend;
            p_recorded(p_recorded.last) := v_ids(i);
        end if;
    end loop;
    p_rest := rowq_ids();
    for i in 1 .. p_ids.count loop
        if not v_known.exists(internal_number_text(p_ids(i))) then
            p_rest.extend;
            p_rest(p_rest.last) := p_ids(i);
        end if;
    end loop;
end internal_record_cancels;

function internal_pop_waiting(p_queue_id in number, p_ids in rowq_ids)
return t_messages
is
-- purpose   Delete messages where they wait, and return them. Leased messages stay.
-- locks     blocked, delayed, ready, group_waiting and dead rows, skipping locked ones
    c_most     constant pls_integer := 10000;
    v_locked   t_locked_rows;
    v_messages t_messages;
    v_rest     t_messages;
    v_popped   pls_integer;
    v_ids      t_numbers;
    v_lanes    t_numbers;
    -- The ids lead, and rows are found by key: the server takes the list for 8168 ids and would
    -- scan the table for one.
    cursor blocked_rows is
        select /*+ leading(a@asked b) use_nl(b) index(b rowq_blocked_pk) */ b.message_id, b.lane
        from rowq_blocked b
        where b.queue_id = p_queue_id
          and b.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        for update skip locked;
    cursor dead_rows is
        select /*+ leading(a@asked d) use_nl(d) index(d rowq_dead_pk) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.queue_id = p_queue_id
          and d.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        for update skip locked;
    -- message.due_at is part of the key of delayed.
    cursor delayed_rows is
        select /*+ leading(a@asked m@asked d) use_nl(d) index(d rowq_delayed_pk) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where (d.queue_id, d.due_at, d.message_id) in (
            select /*+ qb_name(asked) unnest cardinality(a 10) use_nl(m)
                       index(m rowq_message_pk) */
                   m.queue_id, m.due_at, m.message_id
            from table(p_ids) a
            join rowq_message m
              on m.queue_id = p_queue_id
             and m.message_id = a.column_value
        )
        for update skip locked;
    -- A message that was never returned has the lane and seq of its message row. The others are
    -- searched for in all of ready.
    cursor first_rows is
        select /*+ leading(a@asked m@asked r) use_nl(r) index(r rowq_ready_pk) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where (r.queue_id, r.lane, r.seq, r.message_id) in (
            select /*+ qb_name(asked) unnest cardinality(a 10) use_nl(m)
                       index(m rowq_message_pk) */
                   m.queue_id, m.lane, m.seq, m.message_id
            from table(p_ids) a
            join rowq_message m
              on m.queue_id = p_queue_id
             and m.message_id = a.column_value
        )
        for update skip locked;
    cursor other_rows is
        select /*+ index_rs_asc(r rowq_ready_pk) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.message_id in (select a.column_value from table(p_ids) a)
        for update skip locked;
begin
    -- A blocked message moves from there to one of the other tables, so check blocked first.
    open blocked_rows;
    fetch blocked_rows bulk collect into v_ids, v_lanes limit c_most;
    close blocked_rows;
    internal_pop_blocked(p_queue_id, v_ids, v_lanes, v_messages);

    open dead_rows;
    fetch dead_rows bulk collect into v_locked limit c_most;
    close dead_rows;
    internal_delete_dead(v_locked, v_messages);

    open delayed_rows;
    fetch delayed_rows bulk collect into v_locked limit c_most;
    close delayed_rows;
    internal_delete_delayed(v_locked, v_messages);

    open first_rows;
    fetch first_rows bulk collect into v_locked limit c_most;
    close first_rows;
    internal_delete_ready(v_locked, v_messages);

    if v_messages.count < p_ids.count then
        -- A message moves from its group to ready, so check its group first.
        v_popped := v_messages.count;
        v_rest := internal_rest_of_ids(p_queue_id, p_ids, v_messages);
        internal_pop_group_waiting(p_queue_id, v_rest, v_messages);
        v_popped := v_messages.count - v_popped;
        if v_popped < v_rest.count then
            open other_rows;
            fetch other_rows bulk collect into v_locked limit c_most;
            close other_rows;
            internal_delete_ready(v_locked, v_messages);
        end if;
    end if;
    return v_messages;
end internal_pop_waiting;

procedure internal_delete_delayed(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- purpose   Delete delayed rows that are locked, and append their messages.
-- locks     delayed rows, which the caller has locked
    v_next   pls_integer := p_messages.count;
    v_hit    pls_integer := 0;
    v_groups t_texts;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_delayed d
        where d.rowid = p_locked(i).row_id
          and d.message_id = p_locked(i).message_id
        returning d.group_key bulk collect into v_groups;
    -- Take a message only if this statement has deleted its row: another session may have been
    -- first.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            v_hit := v_hit + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
            p_messages(v_next).group_key := v_groups(v_hit);
            p_messages(v_next).is_without_slot := case
                when v_groups(v_hit) is null then 0
                else 1
            end;
        end if;
    end loop;
end internal_delete_delayed;

procedure internal_delete_ready(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- purpose   Delete ready rows that are locked, and append their messages.
-- locks     ready rows, which the caller has locked
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_ready r
        where r.rowid = p_locked(i).row_id
          and r.message_id = p_locked(i).message_id;
    -- Take a message only if this statement has deleted its row: another session may have been
    -- first.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
        end if;
    end loop;
end internal_delete_ready;

function internal_rest_of_ids(
    p_queue_id in number,
    p_ids      in rowq_ids,
    p_messages in t_messages
)
return t_messages
is
-- purpose   Return the messages with these ids that exist and are not in p_messages, with their group_key.
    v_ids    t_numbers;
    v_groups t_texts;
    v_found  t_positions;
    v_rest   t_messages;
    v_next   pls_integer := 0;
begin
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.group_key
    bulk collect into v_ids, v_groups
    from table(p_ids) a
    join rowq_message m
      on m.queue_id = p_queue_id
     and m.message_id = a.column_value;
    for i in 1 .. p_messages.count loop
        v_found(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    for i in 1 .. v_ids.count loop
        if not v_found.exists(internal_number_text(v_ids(i))) then
            v_next := v_next + 1;
            v_rest(v_next).message_id := v_ids(i);
            v_rest(v_next).group_key := v_groups(i);
        end if;
    end loop;
    return v_rest;
end internal_rest_of_ids;

procedure internal_lock_waiting(
    p_queue_id   in number,
    p_message_id in number,
    p_place      out varchar2,
    p_key        out raw,
    p_row        out t_locked_row
)
is
-- purpose   Lock a message where it waits; p_place is null if it is leased, locked or unknown.
-- locks     a blocked, dead, delayed, group_waiting or ready row, skipped if locked
-- p_key is its group.
    v_group_key rowq_message.group_key%type;
    v_due_at    rowq_message.due_at%type;
    v_lane      rowq_message.lane%type;
    v_seq       rowq_message.seq%type;
    cursor message_row is
        select m.group_key, m.due_at, m.lane, m.seq
        from rowq_message m
        where m.queue_id = p_queue_id
          and m.message_id = p_message_id;
    cursor blocked_row is
        select b.rowid, b.message_id, b.lane, 0 as attempt, 0 as seq
        from rowq_blocked b
        where b.queue_id = p_queue_id
          and b.message_id = p_message_id
        for update skip locked;
    cursor dead_row is
        select d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.queue_id = p_queue_id
          and d.message_id = p_message_id
        for update skip locked;
    cursor delayed_row is
        select d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.queue_id = p_queue_id
          and d.due_at = v_due_at
          and d.message_id = p_message_id
        for update skip locked;
    cursor group_waiting_row is
        select g.message_id, g.lane
        from rowq_group_waiting g
        where g.queue_id = p_queue_id
          and g.group_key = p_key
          and g.message_id = p_message_id
        for update skip locked;
    cursor first_row is
        select r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.lane = v_lane
          and r.seq = v_seq
          and r.message_id = p_message_id
        for update skip locked;
    cursor other_row is
        select /*+ index_rs_asc(r rowq_ready_pk) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.message_id = p_message_id
        for update skip locked;
begin
    p_place := null;
    p_row := null;
    open message_row;
    fetch message_row into v_group_key, v_due_at, v_lane, v_seq;
    close message_row;
    if v_lane is null then
        return;
    end if;
    p_key := utl_raw.cast_to_raw(v_group_key);

    -- A blocked message moves from there to one of the other tables, so check blocked first.
    open blocked_row;
    fetch blocked_row into p_row;
    close blocked_row;
    if p_row.message_id is not null then
        p_place := 'blocked';
        return;
    end if;
    open dead_row;
    fetch dead_row into p_row;
    close dead_row;
    if p_row.message_id is not null then
        p_place := 'dead';
        return;
    end if;
    open delayed_row;
    fetch delayed_row into p_row;
    close delayed_row;
    if p_row.message_id is not null then
        p_place := 'delayed';
        return;
    end if;

    -- A message moves from its group to ready, so check its group first.
    if p_key is not null then
        open group_waiting_row;
        fetch group_waiting_row into p_row.message_id, p_row.lane;
        close group_waiting_row;
        if p_row.message_id is not null then
            p_row.attempt := 0;
            p_place := 'group_waiting';
            return;
        end if;
    end if;

    -- A message that was never returned has the lane and seq of its message row. Any other is
    -- searched for in all of ready.
    open first_row;
    fetch first_row into p_row;
    close first_row;
    if p_row.message_id is null then
        open other_row;
        fetch other_row into p_row;
        close other_row;
    end if;
    if p_row.message_id is not null then
        p_place := 'ready';
    end if;
end internal_lock_waiting;

procedure internal_alter_waiting(
    p_queue_id in number,
    p_place    in varchar2,
    p_key      in raw,
    p_row      in t_locked_row,
    p_priority in number,
    p_now      in timestamp,
    p_expires  in boolean,
    p_due_at   in out timestamp
)
is
-- purpose   Give a locked message a priority and a time, where not null; p_due_at becomes its time.
-- locks     rows that the caller has locked; the message row; new rows; as
--           internal_release_group_slots
    c_key      constant rowq_message.group_key%type := utl_raw.cast_to_varchar2(p_key);
    v_lane     rowq_ready.lane%type := coalesce(p_priority * 2 + 1, p_row.lane);
    v_has_time constant boolean := p_due_at is not null;
    v_expires  boolean := p_expires;
    v_delays   boolean := false;
    v_leaves   boolean := false;
    v_group    rowq_message.group_key%type;
    v_moved    t_messages;
    v_seqs     t_numbers;
    v_keys     t_keys;
begin
    v_moved(1).message_id := p_row.message_id;
    v_moved(1).attempt := p_row.attempt;
    if p_priority is not null then
        internal_open_lanes(p_queue_id, v_lane);
    end if;

    case p_place
        when 'dead' then
            update rowq_dead d
            set d.lane = v_lane
            where d.rowid = p_row.row_id;
        when 'blocked' then
            update rowq_blocked b
            set b.lane   = v_lane,
                b.due_at = case
                    when p_due_at is null then b.due_at
                    when p_due_at > p_now then p_due_at
                end
            where b.rowid = p_row.row_id
            returning b.due_at into p_due_at;
        when 'delayed' then
            -- The time is part of the key: delete and insert.
            v_delays := true;
            if v_has_time then
                delete from rowq_delayed d
                where d.rowid = p_row.row_id
                returning d.group_key into v_group;
            else
                delete from rowq_delayed d
                where d.rowid = p_row.row_id
                returning d.group_key, d.due_at into v_group, p_due_at;
            end if;
        when 'group_waiting' then
            if p_due_at > p_now then
                v_delays := true;
                v_group := c_key;
                delete from rowq_group_waiting g
                where g.queue_id = p_queue_id
                  and g.group_key = p_key
                  and g.message_id = p_row.message_id;
            else
                update rowq_group_waiting g
                set g.lane = v_lane
                where g.queue_id = p_queue_id
                  and g.group_key = p_key
                  and g.message_id = p_row.message_id;
                p_due_at := null;
            end if;
        else
            if p_due_at > p_now then
                -- A message that was leased before keeps its slot, as a retried one does. Any other
                -- leaves its group, and joins it again when it is due.
                v_delays := true;
                v_lane := trunc(v_lane / 2) * 2 + 1;
                if p_row.attempt = 0 and p_key is not null then
                    v_leaves := true;
                    v_group := c_key;
                end if;
                delete from rowq_ready r
                where r.rowid = p_row.row_id;
            elsif trunc(v_lane / 2) <> trunc(p_row.lane / 2) then
                delete from rowq_ready r
                where r.rowid = p_row.row_id;
                v_moved(1).lane := v_lane;
                internal_push_ready(p_queue_id, v_moved);
                v_expires := false;
                p_due_at := null;
            else
                update rowq_ready r
                set r.attempt = r.attempt
                where r.rowid = p_row.row_id;
                v_lane := p_row.lane;
                v_seqs(1) := p_row.seq;
                p_due_at := null;
            end if;
    end case;
    v_moved(1).lane := v_lane;

    -- The time of a message that will be delayed is also in its message row.
    if v_has_time and (v_delays or p_place = 'blocked') then
        update rowq_message m
        set m.due_at = p_due_at
        where m.queue_id = p_queue_id
          and m.message_id = p_row.message_id;
    end if;
    if v_delays then
        insert into rowq_delayed (queue_id, due_at, message_id, lane, attempt, group_key)
        values (p_queue_id, p_due_at, p_row.message_id, v_lane, p_row.attempt, v_group);
    end if;
    if v_expires then
        internal_record_expiry(p_queue_id, v_moved, v_seqs);
    end if;
    if v_leaves then
        v_keys(1) := p_key;
        internal_release_group_slots(p_queue_id, v_keys);
    end if;
end internal_alter_waiting;

procedure internal_record_expiry(
    p_queue_id in number,
    p_messages in t_messages,
    p_seqs     in t_numbers
)
is
-- purpose   Add a row of expiry for each of these messages that expires.
-- locks     new expiry rows
-- p_seqs are their seqs in ready, or empty.
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_wanted     rowq_ids := internal_ids_of(p_messages);
    v_ids        t_numbers;
    v_timestamps t_timestamps;
    v_positions     t_positions;
    v_position      pls_integer;
    v_lanes      t_numbers;
    v_seqs       t_numbers;
begin
    if p_messages.count = 0 then
        return;
    end if;
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */
           m.message_id,
           least(greatest(m.expires_at, v_now), v_now + numtodsinterval(1, 'day')) as expires_at
    bulk collect into v_ids, v_timestamps
    from table(v_wanted) a
    join rowq_message m
      on m.queue_id = p_queue_id
     and m.message_id = a.column_value
    where m.expires_at is not null;
    if v_ids.count = 0 then
        return;
    end if;

    for i in 1 .. p_messages.count loop
        v_positions(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    for i in 1 .. v_ids.count loop
        v_lanes(i) := null;
        v_seqs(i) := null;
        if p_seqs.count > 0 then
            v_position := v_positions(internal_number_text(v_ids(i)));
            v_lanes(i) := p_messages(v_position).lane;
            v_seqs(i) := p_seqs(v_position);
        end if;
    end loop;
    forall i in 1 .. v_ids.count
        insert into rowq_expiry (queue_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            p_queue_id, v_timestamps(i), rowq_claim_seq.nextval, v_ids(i), v_lanes(i), v_seqs(i)
        );
end internal_record_expiry;

procedure internal_locate_messages(
    p_queue_id    in number,
    p_message_id  in number,
    p_group_key   in varchar2,
    p_due_at      in out timestamp,
    p_state       out varchar2,
    p_lane        out number,
    p_attempt     out number,
    p_claim_id    out number,
    p_worker_name out varchar2,
    p_lease_until out timestamp,
    p_finished_at out timestamp,
    p_waits_for   out number,
    p_leased_at   out timestamp
)
is
-- purpose   Find a message that still has a body.
-- p_due_at is passed in as the message's due_at, its key in delayed.
    v_due_at constant timestamp(6) := p_due_at;
    v_key    constant raw(800) := utl_raw.cast_to_raw(p_group_key);
    cursor waiting is
        select 'delayed' as state, d.lane, d.attempt, d.due_at,
               cast(null as timestamp) as finished_at, cast(null as number) as waits_for
        from rowq_delayed d
        where d.queue_id = p_queue_id
          and d.due_at = v_due_at
          and d.message_id = p_message_id
        union all
        select 'dead' as state, d.lane, d.attempt, cast(null as timestamp) as due_at,
               d.died_at as finished_at, cast(null as number) as waits_for
        from rowq_dead d
        where d.queue_id = p_queue_id
          and d.message_id = p_message_id
        union all
        select f.state, f.lane, f.attempt, cast(null as timestamp) as due_at,
               f.finished_at, cast(null as number) as waits_for
        from rowq_finished f
        where f.queue_id = p_queue_id
          and f.message_id = p_message_id
        union all
        select 'blocked' as state, b.lane, 0 as attempt, b.due_at,
               cast(null as timestamp) as finished_at, b.predecessor_id as waits_for
        from rowq_blocked b
        where b.queue_id = p_queue_id
          and b.message_id = p_message_id;
    cursor grouped is
        select 'blocked' as state, g.lane, 0 as attempt, (
                   select max(x.message_id)
                   from rowq_group_waiting x
                   where x.queue_id = p_queue_id
                     and x.group_key = v_key
                     and x.message_id < p_message_id
               ) as waits_for
        from rowq_group_waiting g
        where g.queue_id = p_queue_id
          and g.group_key = v_key
          and g.message_id = p_message_id;
    cursor held is
        select 'leased' as state, l.lane, l.attempt, c.claim_id, c.worker_name, c.lease_until,
               c.leased_at
        from rowq_claim c
        join rowq_leased l
          on l.queue_id = c.queue_id
         and l.claim_id = c.claim_id
        where c.queue_id = p_queue_id
          and l.message_id = p_message_id;
    -- first_position finds a message that was never returned, by its whole key; any_position scans
    -- all ready messages of the queue.
    cursor first_position is
        select 'ready' as state, r.lane, r.attempt
        from rowq_message m
        join rowq_ready r
          on r.queue_id = m.queue_id
         and r.lane = m.lane
         and r.seq = m.seq
         and r.message_id = m.message_id
        where m.queue_id = p_queue_id
          and m.message_id = p_message_id;
    cursor any_position is
        select 'ready' as state, r.lane, r.attempt
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.message_id = p_message_id;
begin
    p_due_at := null;
    p_state := null;
    open waiting;
    fetch waiting into p_state, p_lane, p_attempt, p_due_at, p_finished_at, p_waits_for;
    close waiting;
    if p_state is null and v_key is not null then
        open grouped;
        fetch grouped into p_state, p_lane, p_attempt, p_waits_for;
        close grouped;
    end if;
    if p_state is null then
        open held;
        fetch held into p_state, p_lane, p_attempt, p_claim_id, p_worker_name, p_lease_until,
            p_leased_at;
        close held;
    end if;
    if p_state is null then
        open first_position;
        fetch first_position into p_state, p_lane, p_attempt;
        close first_position;
    end if;
    if p_state is null then
        open any_position;
        fetch any_position into p_state, p_lane, p_attempt;
        close any_position;
    end if;
    if p_state is null then
        -- Another session has moved the message between these reads, so it holds the message:
        -- report it as leased.
        p_state := 'leased';
    end if;
end internal_locate_messages;

procedure internal_add_reason(
    p_reasons     in out nocopy rowq_reasons,
    p_reason      in varchar2,
    p_detail      in varchar2,
    p_clears_at   in timestamp default null,
    p_blocking_id in number default null,
    p_claim_id    in number default null,
    p_worker_name in varchar2 default null
)
is
-- purpose   Append a reason to those of explain_message.
begin
    p_reasons.extend;
    p_reasons(p_reasons.count) := rowq_reason(
        p_reasons.count, p_reason, p_clears_at, p_blocking_id, p_claim_id, p_worker_name, p_detail
    );
end internal_add_reason;

procedure internal_explain_blocked(
    p_queue      in t_queue,
    p_message_id in number,
    p_group_key  in varchar2,
    p_reasons    in out nocopy rowq_reasons
)
is
-- purpose   Append which message a blocked one waits for.
    v_due_at         timestamp(6);
    v_state          varchar2(20 char);
    v_lane           number;
    v_attempt        number;
    v_claim_id       number;
    v_worker_name    rowq_claim.worker_name%type;
    v_leased_at      timestamp(6);
    v_lease_until    timestamp(6);
    v_finished_at    timestamp(6);
    v_waits_for      number;
    v_is_blocked     pls_integer;
    v_is_known       pls_integer;
    v_group_key      rowq_message.group_key%type;
    v_predecessor_id number;
begin
    select count(*), max(b.predecessor_id) into v_is_blocked, v_predecessor_id
    from rowq_blocked b
    where b.queue_id = p_queue.queue_id
      and b.message_id = p_message_id;
    if v_is_blocked = 0 then
        internal_explain_group(p_queue, p_message_id, p_group_key, p_reasons);
        return;
    end if;

    select count(*), max(m.due_at), max(m.group_key) into v_is_known, v_due_at, v_group_key
    from rowq_message m
    where m.queue_id = p_queue.queue_id
      and m.message_id = v_predecessor_id;
    if v_is_known = 1 then
        internal_locate_messages(
            p_queue.queue_id, v_predecessor_id, v_group_key, v_due_at, v_state, v_lane, v_attempt,
            v_claim_id, v_worker_name, v_lease_until, v_finished_at, v_waits_for, v_leased_at
        );
    end if;
    if v_state is null or v_state in ('completed', 'cancelled', 'expired') then
        internal_add_reason(
            p_reasons, 'deferred', 'its predecessor has ended; the next maintain resumes it'
        );
    elsif v_state = 'dead' then
        internal_add_reason(
            p_reasons, 'predecessor_dead', 'its predecessor is dead; reset, cancel or discard that',
            null, v_predecessor_id
        );
    else
        internal_add_reason(
            p_reasons, 'predecessor', 'it waits for its predecessor, which is ' || v_state,
            coalesce(v_lease_until, v_due_at), v_predecessor_id, v_claim_id, v_worker_name
        );
    end if;
end internal_explain_blocked;

procedure internal_explain_group(
    p_queue      in t_queue,
    p_message_id in number,
    p_group_key  in varchar2,
    p_reasons    in out nocopy rowq_reasons
)
is
-- purpose   Append which messages have the slots of a group, and how many wait before this one.
    v_key     constant raw(800) := utl_raw.cast_to_raw(p_group_key);
    v_now     constant timestamp(6) := sys_extract_utc(systimestamp);
    v_before  constant pls_integer := p_reasons.count;
    v_claims  constant number := internal_read_floor(p_queue.queue_id, -1 /* claim */);
    v_due     constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.queue_id, -4 /* deferred */));
    v_delayed constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.queue_id, -2 /* delayed */));
    v_waiting pls_integer;
begin
    -- A slot does not name its message, and there are few claims, so begin with these.
    for n in (
        select /*+ leading(h m c) use_nl(m) use_nl(c) */
               c.lease_until, h.message_id, h.claim_id, c.worker_name, m.group_key
        from (
            select /*+ index_rs_asc(l rowq_leased_pk) */ l.claim_id, l.message_id
            from rowq_leased l
            where l.queue_id = p_queue.queue_id
              and l.claim_id >= v_claims
            fetch first 10000 rows only
        ) h
        join rowq_message m
          on m.queue_id = p_queue.queue_id
         and m.message_id = h.message_id
        join rowq_claim c
          on c.queue_id = p_queue.queue_id
         and c.claim_id = h.claim_id
        where m.group_key is not null
    ) loop
        if utl_raw.cast_to_raw(n.group_key) = v_key then
            internal_add_reason(
                p_reasons, 'group',
                'a message of its group is leased; the next one follows when it ends',
                n.lease_until, n.message_id, n.claim_id, n.worker_name
            );
        end if;
    end loop;

    for n in (
        select h.due_at
        from (
            select /*+ index_rs_asc(d rowq_deferred_pk) */ d.due_at, d.group_key
            from rowq_deferred d
            where d.queue_id = p_queue.queue_id
              and d.due_at >= v_due
            fetch first 10000 rows only
        ) h
        where h.group_key = v_key
    ) loop
        internal_add_reason(
            p_reasons, case when n.due_at > v_now then 'group_pause' else 'deferred' end,
            case
                when n.due_at > v_now then 'its group pauses between two messages'
                else 'the next maintain passes on the slot of its group'
            end,
            n.due_at
        );
    end loop;

    if p_reasons.count - v_before < p_queue.group_limit then
        for n in (
            select /*+ leading(h m) use_nl(m) */ h.message_id, m.group_key
            from (
                select /*+ index_rs_asc(d rowq_dead_pk) */ d.message_id, d.holds_slot
                from rowq_dead d
                where d.queue_id = p_queue.queue_id
                fetch first 10000 rows only
            ) h
            join rowq_message m
              on m.queue_id = p_queue.queue_id
             and m.message_id = h.message_id
            where h.holds_slot = 1
              and m.group_key is not null
        ) loop
            if utl_raw.cast_to_raw(n.group_key) = v_key then
                internal_add_reason(
                    p_reasons, 'group_dead',
                    'a dead message holds the slot of its group; reset, cancel or discard it',
                    null, n.message_id
                );
            end if;
        end loop;
    end if;
    if p_reasons.count - v_before < p_queue.group_limit then
        for n in (
            select /*+ leading(h m) use_nl(m) */ h.message_id, h.due_at, m.group_key
            from (
                select /*+ index_rs_asc(d rowq_delayed_pk) */ d.message_id, d.due_at, d.group_key
                from rowq_delayed d
                where d.queue_id = p_queue.queue_id
                  and d.due_at >= v_delayed
                fetch first 10000 rows only
            ) h
            join rowq_message m
              on m.queue_id = p_queue.queue_id
             and m.message_id = h.message_id
            where h.group_key is null
              and m.group_key is not null
        ) loop
            if utl_raw.cast_to_raw(n.group_key) = v_key then
                internal_add_reason(
                    p_reasons, 'group', 'a message of its group is delayed after an attempt',
                    n.due_at, n.message_id
                );
            end if;
        end loop;
    end if;
    if p_reasons.count - v_before < p_queue.group_limit then
        for n in (
            select /*+ leading(h m) use_nl(m) */ h.message_id, m.group_key
            from (
                select /*+ leading(l r) use_nl(r) index_rs_asc(r rowq_ready_pk) */ r.message_id
                from rowq_lane l
                join rowq_ready r
                  on r.queue_id = l.queue_id
                 and r.lane = l.lane
                 and r.seq >= l.floor_seq
                where l.queue_id = p_queue.queue_id
                  and l.lane >= 0
                fetch first 10000 rows only
            ) h
            join rowq_message m
              on m.queue_id = p_queue.queue_id
             and m.message_id = h.message_id
            where m.group_key is not null
        ) loop
            if utl_raw.cast_to_raw(n.group_key) = v_key then
                internal_add_reason(
                    p_reasons, 'group', 'a message of its group is ready and is delivered first',
                    null, n.message_id
                );
            end if;
        end loop;
    end if;

    select count(*) into v_waiting
    from (
        select /*+ index_rs_asc(g rowq_group_waiting_pk) */ g.message_id
        from rowq_group_waiting g
        where g.queue_id = p_queue.queue_id
          and g.group_key = v_key
          and g.message_id < p_message_id
        fetch first 10000 rows only
    ) h;
    if v_waiting > 0 or p_reasons.count = v_before then
        internal_add_reason(
            p_reasons, 'group',
            case v_waiting
                when 1 then '1 message of its group waits before it'
                else internal_number_text(v_waiting) || ' messages of its group wait before it'
            end
        );
    end if;
end internal_explain_group;

procedure internal_explain_ready(
    p_queue      in t_queue,
    p_message_id in number,
    p_lane       in number,
    p_reasons    in out nocopy rowq_reasons
)
is
-- purpose   Append why a ready message is not leased.
    v_now          constant timestamp(6) := sys_extract_utc(systimestamp);
    v_floor        constant number := internal_read_floor(p_queue.queue_id, p_lane);
    v_claims       constant number := internal_read_floor(p_queue.queue_id, -1 /* claim */);
    v_is_paused    pls_integer;
    v_max_leased   number;
    v_rate_limit   number;
    v_rate_seconds number;
    v_since        timestamp(6);
    v_seq          number;
    v_count        number;
    v_others       number;
    v_first        timestamp(6);
    v_last         timestamp(6);
begin
    select case when q.paused_at is null then 0 else 1 end, q.max_leased, q.rate_limit,
           q.rate_seconds
    into v_is_paused, v_max_leased, v_rate_limit, v_rate_seconds
    from rowq_queue q
    where q.queue_id = p_queue.queue_id;

    -- Its first position, by its whole key; else among the first rows of its lane.
    select max(r.seq) into v_seq
    from rowq_message m
    join rowq_ready r
      on r.queue_id = m.queue_id
     and r.lane = m.lane
     and r.seq = m.seq
     and r.message_id = m.message_id
    where m.queue_id = p_queue.queue_id
      and m.message_id = p_message_id;
    if v_seq is null then
        select max(h.seq) into v_seq
        from (
            select /*+ index_rs_asc(r rowq_ready_pk) */ r.seq, r.message_id
            from rowq_ready r
            where r.queue_id = p_queue.queue_id
              and r.lane = p_lane
              and r.seq >= v_floor
            fetch first 10000 rows only
        ) h
        where h.message_id = p_message_id;
    end if;
    if v_seq < v_floor then
        internal_add_reason(
            p_reasons, 'late',
            'it was committed after messages behind it were delivered; the next maintain finds it'
        );
    end if;

    select min(h.lease_until), max(h.lease_until) into v_first, v_last
    from (
        select /*+ index_rs_asc(c rowq_claim_pk) */ c.lease_until
        from rowq_claim c
        where c.queue_id = p_queue.queue_id
          and c.claim_id >= v_claims
        fetch first 10000 rows only
    ) h;
    if v_max_leased > 0 then
        -- Count from the first row, as a dequeue does.
        select count(*) into v_count
        from (
            select /*+ index_rs_asc(l rowq_leased_pk) */ l.message_id
            from rowq_leased l
            where l.queue_id = p_queue.queue_id
            fetch first 10000 rows only
        ) h;
        if v_count >= least(v_max_leased, 10000) then
            internal_add_reason(
                p_reasons, 'max_leased',
                'the queue is at its max_leased of ' || internal_number_text(v_max_leased), v_first
            );
        end if;
    end if;

    if v_rate_limit > 0 then
        v_since := v_now - numtodsinterval(v_rate_seconds, 'second');
        select coalesce(sum(h.messages), 0), min(h.started_at) into v_count, v_first
        from (
            select /*+ index_rs_asc(s rowq_started_pk) */ s.messages, s.started_at
            from rowq_started s
            where s.queue_id = p_queue.queue_id
              and s.started_at > v_since
            fetch first 10000 rows only
        ) h;
        if v_count >= v_rate_limit then
            internal_add_reason(
                p_reasons, 'rate_limit',
                'the queue is at its rate_limit of ' || internal_number_text(v_rate_limit)
                || ' per rate_seconds',
                v_first + numtodsinterval(v_rate_seconds, 'second')
            );
        end if;
    end if;

    -- The lanes before its own, then its own up to it.
    v_seq := coalesce(v_seq, 9223372036854775807);
    select count(*) into v_count
    from (
        select /*+ leading(l r) use_nl(r) index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_lane l
        join rowq_ready r
          on r.queue_id = l.queue_id
         and r.lane = l.lane
         and r.seq >= l.floor_seq
        where l.queue_id = p_queue.queue_id
          and l.lane >= 0
          and l.lane < p_lane
        fetch first 10000 rows only
    ) h;
    select count(*) into v_others
    from (
        select /*+ index_rs_asc(r rowq_ready_pk) */ r.message_id
        from rowq_ready r
        where r.queue_id = p_queue.queue_id
          and r.lane = p_lane
          and r.seq >= v_floor
          and r.seq <= v_seq
          and (r.seq < v_seq or r.message_id < p_message_id)
        fetch first 10000 rows only
    ) h;
    v_count := least(v_count + v_others, 10000);
    if v_count = 0 then
        internal_add_reason(
            p_reasons, 'next', 'the next dequeue that leases a message leases this one'
        );
    else
        internal_add_reason(
            p_reasons, 'behind',
            case v_count
                when 1 then '1 ready message is before it'
                else internal_number_text(v_count) || ' ready messages are before it'
            end
        );
    end if;

    if v_is_paused = 0 and (v_last is null or v_last <= v_now) then
        select count(*) into v_count
        from rowq_worker w
        where w.queue_id = p_queue.queue_id
          and w.last_seen_at > v_now - interval '60' second;
        if v_count = 0 then
            internal_add_reason(
                p_reasons, 'no_worker',
                'no message of the queue is leased, and no worker has reported for 60 seconds'
            );
        end if;
    end if;
end internal_explain_ready;

function internal_expire(p_queue in t_queue, p_limit in number)
return number
is
-- purpose   Expire due messages, up to about p_limit; return how many expired.
-- locks     expiry rows; as internal_pop_expired; then as complete
-- differs   it runs under each isolation level: a row whose message one statement does not find is
--           obsolete, however old the snapshot is
    c_steps     constant pls_integer := 10;
    c_slow_scan constant number := 20000;
    v_started constant timestamp(6) := sys_extract_utc(systimestamp);
    v_now   timestamp(6) := v_started;
    v_since timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.queue_id, -6 /* expiry */));
    v_found    t_expiring_list;
    v_due      t_expiring_list;
    v_later    t_expiring_list;
    v_messages t_messages;
    v_ended    t_positions;
    v_postponed t_positions;
    v_text     varchar2(40 char);
    v_gone     t_expiring_list;
    v_kept     t_expiring_list;
    v_took     number;
    v_seen     pls_integer := 0;
    v_expired  pls_integer := 0;
    -- One statement checks all tables, so that no message is missed on its way from one to another.
    cursor due_rows is
        select /*+ leading(e m) use_nl(m) index_rs_asc(e rowq_expiry_pk) index(m rowq_message_pk) */
               e.expires_at, e.expiry_id, e.message_id, e.lane, e.seq, m.due_at, m.group_key,
               least(m.expires_at, v_now + numtodsinterval(1, 'day')) as later_at,
               case
                   when m.expires_at is null then null
                   when exists (
                       select /*+ no_unnest index(r rowq_ready_pk) */ null
                       from rowq_ready r
                       where r.queue_id = e.queue_id
                         and r.lane = e.lane
                         and r.seq = e.seq
                         and r.message_id = e.message_id
                   ) then case when m.expires_at > v_now then 'later' else 'ready' end
                   when exists (
                       select /*+ no_unnest index(d rowq_delayed_pk) */ null
                       from rowq_delayed d
                       where d.queue_id = m.queue_id
                         and d.due_at = m.due_at
                         and d.message_id = m.message_id
                   ) then case when m.expires_at > v_now then 'later' else 'delayed' end
                   when exists (
                       select /*+ no_unnest index(b rowq_blocked_pk) */ null
                       from rowq_blocked b
                       where b.queue_id = e.queue_id
                         and b.message_id = e.message_id
                   ) then case when m.expires_at > v_now then 'later' else 'blocked' end
                   when exists (
                       select /*+ no_unnest index(g rowq_group_waiting_pk) */ null
                       from rowq_group_waiting g
                       where g.queue_id = m.queue_id
                         and g.group_key = hextoraw(rawtohex(m.group_key))
                         and g.message_id = m.message_id
                   ) then case when m.expires_at > v_now then 'later' else 'group_waiting' end
               end as state
        from rowq_expiry e
        left join rowq_message m
          on m.queue_id = e.queue_id
         and m.message_id = e.message_id
        where e.queue_id = p_queue.queue_id
          and e.expires_at >= v_since
          and e.expires_at <= v_now
        order by e.queue_id, e.expires_at, e.expiry_id;
begin
    open due_rows;
    while v_seen < c_steps * p_limit and v_expired < p_limit loop
        fetch due_rows bulk collect into v_found limit p_limit;
        exit when v_found.count = 0;
        v_seen := v_seen + v_found.count;
        v_due.delete;
        v_later.delete;
        v_postponed.delete;
        for i in 1 .. v_found.count loop
            v_text := internal_number_text(v_found(i).message_id);
            if v_found(i).state = 'later' and not v_postponed.exists(v_text) then
                v_postponed(v_text) := i;
                v_later(v_later.count + 1) := v_found(i);
            else
                v_due(v_due.count + 1) := v_found(i);
                -- Keep only one row of a message that expires later.
                if v_found(i).state = 'later' then
                    v_due(v_due.count).state := null;
                end if;
            end if;
        end loop;
        forall i in 1 .. v_later.count
            update rowq_expiry e
            set e.expires_at = v_later(i).later_at
            where e.queue_id = p_queue.queue_id
              and e.expires_at = v_later(i).expires_at
              and e.expiry_id = v_later(i).expiry_id;
        internal_pop_expired(p_queue.queue_id, v_due, v_messages);
        internal_finish(p_queue, v_messages, 'expired');
        v_expired := v_expired + v_messages.count;

        -- A message that is in none of these tables has ended, is dead, or is leased: the call that
        -- returns it adds a row. Keep the row of a locked message.
        v_ended.delete;
        v_gone.delete;
        for i in 1 .. v_messages.count loop
            v_ended(internal_number_text(v_messages(i).message_id)) := i;
        end loop;
        for i in 1 .. v_due.count loop
            if v_due(i).state is null
               or v_ended.exists(internal_number_text(v_due(i).message_id)) then
                v_gone(v_gone.count + 1) := v_due(i);
            else
                v_kept(v_kept.count + 1) := v_due(i);
            end if;
        end loop;
        forall i in 1 .. v_gone.count
            delete from rowq_expiry e
            where e.queue_id = p_queue.queue_id
              and e.expires_at = v_gone(i).expires_at
              and e.expiry_id = v_gone(i).expiry_id;
        -- Read again: messages that were resumed here have rows with later times.
        if v_messages.count > 0 and v_found.count = p_limit then
            close due_rows;
            v_since := v_found(v_found.count).expires_at;
            v_now := sys_extract_utc(systimestamp);
            open due_rows;
        end if;
    end loop;
    close due_rows;

    -- Move the rows that are kept behind the other due rows if they could block them. Otherwise
    -- leave them: an idle transaction must not cause writes.
    v_took := internal_microseconds(sys_extract_utc(systimestamp))
        - internal_microseconds(v_started);
    if v_seen >= c_steps * p_limit or v_took > c_slow_scan then
        forall i in 1 .. v_kept.count
            update rowq_expiry e
            set e.expires_at = v_now
            where e.queue_id = p_queue.queue_id
              and e.expires_at = v_kept(i).expires_at
              and e.expiry_id = v_kept(i).expiry_id;
    end if;
    return v_expired;
end internal_expire;

procedure internal_pop_expired(
    p_queue_id in number,
    p_due      in t_expiring_list,
    p_messages out nocopy t_messages
)
is
-- purpose   Delete messages in the states where they were found, except locked ones, and return them.
-- locks     as internal_lock_expiring; then message rows, skipped if locked
    -- ORA-08177: the transaction is serializable, and another session has changed a row since it
    -- began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_row     t_locked_row;
    v_rows    t_locked_rows;
    v_ids     rowq_ids := rowq_ids();
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_expired t_numbers;
    v_free    t_positions;
    v_at      pls_integer;
    v_ready   t_locked_rows;
    v_delayed t_locked_rows;
    v_blocked t_numbers;
    v_lanes   t_numbers;
    v_waiting t_messages;
begin
    p_messages.delete;
    begin
        for i in 1 .. p_due.count loop
            if p_due(i).state is not null then
                internal_lock_expiring(p_queue_id, p_due(i), v_row);
                if v_row.message_id is not null then
                    v_rows(i) := v_row;
                    v_ids.extend;
                    v_ids(v_ids.last) := v_row.message_id;
                end if;
            end if;
        end loop;
    exception
        when e_not_serial then
            return;
    end;
    if v_ids.count = 0 then
        return;
    end if;

    -- Skip a message that a producer has just named as a predecessor.
    internal_lock_messages(p_queue_id, v_ids, v_locked, v_held);
    -- alter_message may have given a message another time before it was locked: read again.
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_expired
    from table(v_locked) a
    join rowq_message m
      on m.queue_id = p_queue_id
     and m.message_id = a.column_value
    where m.expires_at <= sys_extract_utc(systimestamp);
    for i in 1 .. v_expired.count loop
        v_free(internal_number_text(v_expired(i))) := i;
    end loop;
    v_at := v_rows.first;
    while v_at is not null loop
        if v_free.exists(internal_number_text(v_rows(v_at).message_id)) then
            case p_due(v_at).state
                when 'ready' then
                    v_ready(v_ready.count + 1) := v_rows(v_at);
                when 'delayed' then
                    v_delayed(v_delayed.count + 1) := v_rows(v_at);
                when 'blocked' then
                    v_blocked(v_blocked.count + 1) := v_rows(v_at).message_id;
                    v_lanes(v_blocked.count) := v_rows(v_at).lane;
                else
                    v_waiting(v_waiting.count + 1).message_id := v_rows(v_at).message_id;
                    v_waiting(v_waiting.count).group_key := p_due(v_at).group_key;
            end case;
        end if;
        v_at := v_rows.next(v_at);
    end loop;

    internal_delete_ready(v_ready, p_messages);
    internal_delete_delayed(v_delayed, p_messages);
    internal_pop_blocked(p_queue_id, v_blocked, v_lanes, p_messages);
    internal_pop_group_waiting(p_queue_id, v_waiting, p_messages);
end internal_pop_expired;

procedure internal_lock_expiring(
    p_queue_id in number,
    p_expiring in t_expiring,
    p_row      out t_locked_row
)
is
-- purpose   Lock the row of an expiring message where it was found; p_row is empty if that fails.
-- locks     a ready, delayed, blocked or group_waiting row, skipped if locked
    v_key constant raw(800) := utl_raw.cast_to_raw(p_expiring.group_key);
    cursor ready_row is
        select r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.lane = p_expiring.lane
          and r.seq = p_expiring.seq
          and r.message_id = p_expiring.message_id
        for update skip locked;
    cursor delayed_row is
        select d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.queue_id = p_queue_id
          and d.due_at = p_expiring.due_at
          and d.message_id = p_expiring.message_id
        for update skip locked;
    cursor blocked_row is
        select b.message_id, b.lane
        from rowq_blocked b
        where b.queue_id = p_queue_id
          and b.message_id = p_expiring.message_id
        for update skip locked;
    cursor grouped_row is
        select g.message_id, g.lane
        from rowq_group_waiting g
        where g.queue_id = p_queue_id
          and g.group_key = v_key
          and g.message_id = p_expiring.message_id
        for update skip locked;
begin
    p_row := null;
    case p_expiring.state
        when 'ready' then
            open ready_row;
            fetch ready_row into p_row;
            close ready_row;
        when 'delayed' then
            open delayed_row;
            fetch delayed_row into p_row;
            close delayed_row;
        when 'blocked' then
            open blocked_row;
            fetch blocked_row into p_row.message_id, p_row.lane;
            close blocked_row;
        else
            open grouped_row;
            fetch grouped_row into p_row.message_id, p_row.lane;
            close grouped_row;
    end case;
end internal_lock_expiring;
