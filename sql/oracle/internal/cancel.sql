-- Cancel: by a caller, or by expiry; and where a message is.
--
-- A message that waits is taken out of its place and ends as cancelled or expired. A leased message
-- stays with its worker: the cancel is recorded in the claim, the heartbeat returns it, and the
-- call that returns the message ends it. A message that expires has a row in expiry, which says
-- where the message was when it became ready. Each call that makes it ready at a new place adds
-- another row, so maintain finds every due message by key and may forget a row whose message it
-- does not find. A locked message is skipped and looked up again.
--
--   cancel -> record_cancels
--   cancel, cancel_many -> pop_waiting -> delete_delayed, delete_ready, rest_of_ids
--   purge_waiting, promote -> delete_delayed
--   purge_ready, pop_ready -> delete_ready
--   reset, push_delayed, push_ready -> record_expiry
--   get_message, get_history, read_result -> locate_messages
--   maintain_queue -> expire -> pop_expired
--   pop_expired -> lock_expiring, delete_ready, delete_delayed
--
-- Writes claim, delayed, expiry, leased, ready. Only reads blocked, dead, finished, group_waiting,
-- message.

procedure internal_record_cancels(
    p_queue_id in number,
    p_ids      in rowq_ids,
    p_noted    out nocopy rowq_ids,
    p_rest     out nocopy rowq_ids
)
is
-- purpose   Note for those of these messages that claims hold that they were cancelled (p_noted); p_rest are the others.
-- locks     claim rows, passing over locked ones; then leased rows
    c_most constant pls_integer := 10000;
    v_claim_ids t_numbers;
    v_places    t_numbers;
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
    p_noted := rowq_ids();
    p_rest := p_ids;
    -- Find the claims without locks, so that none is locked that holds none of the messages. Begin
    -- before the floor, because a claim that was committed late may hold one of them.
    select /*+ leading(l a@asked) use_hash(a@asked) index_rs_asc(l rowq_leased_pk) */
           l.claim_id, l.place, l.message_id
    bulk collect into v_claim_ids, v_places, v_held_ids
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
            v_at(v_next) := v_places(i);
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
    -- A message that was finished before its claim was locked is not there any more.
    v_known.delete;
    for i in 1 .. v_ids.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_known(internal_number_text(v_ids(i))) := i;
            p_noted.extend;
            p_noted(p_noted.last) := v_ids(i);
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
-- purpose   Take messages out of wherever they wait; those that a worker holds stay.
-- locks     blocked, delayed, ready, group_waiting and dead rows, passing over locked ones
    c_most     constant pls_integer := 10000;
    v_locked   t_locked_rows;
    v_messages t_messages;
    v_rest     t_messages;
    v_popped   pls_integer;
    v_ids      t_numbers;
    v_lanes    t_numbers;
    -- The ids lead and the rows are found by key, one by one: the server takes a list for 8168 ids,
    -- and would read the table whole for one of them.
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
    -- Find a delayed message by message.due_at, which is its place in delayed.
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
    -- A message that was never given back is at its first place (lane and seq of message). The
    -- others that have a body are looked for among all ready messages.
    cursor first_places is
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
    cursor other_places is
        select /*+ index_rs_asc(r rowq_ready_pk) */
               r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.queue_id = p_queue_id
          and r.message_id in (select a.column_value from table(p_ids) a)
        for update skip locked;
begin
    -- A message that waits for others goes to each of the other places from there, so look for it
    -- first.
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

    open first_places;
    fetch first_places bulk collect into v_locked limit c_most;
    close first_places;
    internal_delete_ready(v_locked, v_messages);

    if v_messages.count < p_ids.count then
        -- A message goes from its group to the ready ones, so look for it there first.
        v_popped := v_messages.count;
        v_rest := internal_rest_of_ids(p_queue_id, p_ids, v_messages);
        internal_pop_group_waiting(p_queue_id, v_rest, v_messages);
        v_popped := v_messages.count - v_popped;
        if v_popped < v_rest.count then
            open other_places;
            fetch other_places bulk collect into v_locked limit c_most;
            close other_places;
            internal_delete_ready(v_locked, v_messages);
        end if;
    end if;
    return v_messages;
end internal_pop_waiting;

procedure internal_delete_delayed(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- purpose   Delete delayed rows that are locked, and append their messages.
-- locks     delayed rows, which the caller holds already
-- differs   no such helper elsewhere: part of promote and pop_waiting
    v_next   pls_integer := p_messages.count;
    v_hit    pls_integer := 0;
    v_groups t_texts;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_delayed d
        where d.rowid = p_locked(i).row_id
          and d.message_id = p_locked(i).message_id
        returning d.group_key bulk collect into v_groups;
    -- Take a message only if this statement has deleted its row, so that no other session has the
    -- message too.
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
-- locks     ready rows, which the caller holds already
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_ready r
        where r.rowid = p_locked(i).row_id
          and r.message_id = p_locked(i).message_id;
    -- Take a message only if this statement has deleted its row, so that no other session has the
    -- message too.
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
-- purpose   Return the messages with these ids that are there and not among p_messages, with their group_key.
-- differs   no such helper elsewhere: part of internal_pop_waiting
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

procedure internal_record_expiry(
    p_queue_id in number,
    p_messages in t_messages,
    p_seqs     in t_numbers
)
is
-- purpose   Let maintain look again for those of the messages that expire. p_seqs are their places in ready, and empty where they wait elsewhere.
-- locks     new expiry rows
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_wanted     rowq_ids := internal_ids_of(p_messages);
    v_ids        t_numbers;
    v_timestamps t_timestamps;
    v_places     t_positions;
    v_place      pls_integer;
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
        v_places(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    for i in 1 .. v_ids.count loop
        v_lanes(i) := null;
        v_seqs(i) := null;
        if p_seqs.count > 0 then
            v_place := v_places(internal_number_text(v_ids(i)));
            v_lanes(i) := p_messages(v_place).lane;
            v_seqs(i) := p_seqs(v_place);
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
-- purpose   Find where a message is that still has a body; p_due_at is passed in as its last place in delayed.
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
    -- first_place finds a message that was never given back, by its whole key; any_place looks
    -- among all ready messages of the queue.
    cursor first_place is
        select 'ready' as state, r.lane, r.attempt
        from rowq_message m
        join rowq_ready r
          on r.queue_id = m.queue_id
         and r.lane = m.lane
         and r.seq = m.seq
         and r.message_id = m.message_id
        where m.queue_id = p_queue_id
          and m.message_id = p_message_id;
    cursor any_place is
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
        open first_place;
        fetch first_place into p_state, p_lane, p_attempt;
        close first_place;
    end if;
    if p_state is null then
        open any_place;
        fetch any_place into p_state, p_lane, p_attempt;
        close any_place;
    end if;
    if p_state is null then
        -- Another session has moved the message from one place to another between these looks, so
        -- it is in that session's hands: report it as leased.
        p_state := 'leased';
    end if;
end internal_locate_messages;

function internal_expire(p_queue in t_queue, p_limit in number)
return number
is
-- purpose   Withdraw messages whose time has come, until p_limit is passed; return how many there were.
-- locks     expiry rows; as internal_pop_expired; then as complete
-- differs   under each isolation level: a statement shows one moment, and a row whose message is in
--           no place at that moment is of no use from then on, however old it is
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
    v_put_off  t_positions;
    v_text     varchar2(40 char);
    v_gone     t_expiring_list;
    v_kept     t_expiring_list;
    v_took     number;
    v_seen     pls_integer := 0;
    v_expired  pls_integer := 0;
    -- One statement looks for the message in all places, so that none is missed on its way from one
    -- to another.
    cursor due_rows is
        select /*+ leading(e m) use_nl(m) index_rs_asc(e rowq_expiry_pk) index(m rowq_message_pk) */
               e.expires_at, e.expiry_id, e.message_id, e.lane, e.seq, m.due_at, m.group_key,
               least(m.expires_at, v_now + numtodsinterval(1, 'day')) as later_at,
               case
                   when m.message_id is null then null
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
                   ) then case when m.expires_at > v_now then 'later' else 'grouped' end
               end as place
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
        v_put_off.delete;
        for i in 1 .. v_found.count loop
            v_text := internal_number_text(v_found(i).message_id);
            if v_found(i).place = 'later' and not v_put_off.exists(v_text) then
                v_put_off(v_text) := i;
                v_later(v_later.count + 1) := v_found(i);
            else
                v_due(v_due.count + 1) := v_found(i);
                -- One row of a message that expires later is enough.
                if v_found(i).place = 'later' then
                    v_due(v_due.count).place := null;
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

        -- A message that is in no place has ended, is dead, or is held by a claim, and who gives it
        -- back adds a row. One that another session holds now is looked for again.
        v_ended.delete;
        v_gone.delete;
        for i in 1 .. v_messages.count loop
            v_ended(internal_number_text(v_messages(i).message_id)) := i;
        end loop;
        for i in 1 .. v_due.count loop
            if v_due(i).place is null
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
        -- Look anew, because what the end of a message has let go on has a row of a later moment.
        if v_messages.count > 0 and v_found.count = p_limit then
            close due_rows;
            v_since := v_found(v_found.count).expires_at;
            v_now := sys_extract_utc(systimestamp);
            open due_rows;
        end if;
    end loop;
    close due_rows;

    -- Put what is kept behind the others that are due, once it could stand in front of them: else a
    -- session that is idle in its transaction must not make every look write.
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
-- purpose   Take messages out of the places where they were seen, unless another session holds them.
-- locks     as internal_lock_expiring; then message rows, tried only
    -- ORA-08177: this transaction is serializable, and another has changed a row since it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_row     t_locked_row;
    v_rows    t_locked_rows;
    v_ids     rowq_ids := rowq_ids();
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_free    t_positions;
    v_at      pls_integer;
    v_ready   t_locked_rows;
    v_delayed t_locked_rows;
    v_blocked t_numbers;
    v_lanes   t_numbers;
    v_grouped t_messages;
begin
    p_messages.delete;
    begin
        for i in 1 .. p_due.count loop
            if p_due(i).place is not null then
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

    -- Leave alone what a producer has just named as a predecessor.
    internal_lock_messages(p_queue_id, v_ids, v_locked, v_held);
    for i in 1 .. v_locked.count loop
        v_free(internal_number_text(v_locked(i))) := i;
    end loop;
    v_at := v_rows.first;
    while v_at is not null loop
        if v_free.exists(internal_number_text(v_rows(v_at).message_id)) then
            case p_due(v_at).place
                when 'ready' then
                    v_ready(v_ready.count + 1) := v_rows(v_at);
                when 'delayed' then
                    v_delayed(v_delayed.count + 1) := v_rows(v_at);
                when 'blocked' then
                    v_blocked(v_blocked.count + 1) := v_rows(v_at).message_id;
                    v_lanes(v_blocked.count) := v_rows(v_at).lane;
                else
                    v_grouped(v_grouped.count + 1).message_id := v_rows(v_at).message_id;
                    v_grouped(v_grouped.count).group_key := p_due(v_at).group_key;
            end case;
        end if;
        v_at := v_rows.next(v_at);
    end loop;

    internal_delete_ready(v_ready, p_messages);
    internal_delete_delayed(v_delayed, p_messages);
    internal_pop_blocked(p_queue_id, v_blocked, v_lanes, p_messages);
    internal_pop_group_waiting(p_queue_id, v_grouped, p_messages);
end internal_pop_expired;

procedure internal_lock_expiring(
    p_queue_id in number,
    p_expiring in t_expiring,
    p_row      out t_locked_row
)
is
-- purpose   Lock the row of the place in which a message that expires was seen; p_row is empty where somebody holds it, or it is gone.
-- locks     a ready, delayed, blocked or group_waiting row, passed over when locked
-- differs   no such helper elsewhere: part of internal_pop_expired
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
    case p_expiring.place
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
