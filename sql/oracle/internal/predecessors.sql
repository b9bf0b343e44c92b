-- Predecessors: messages that wait for others to end, and deferred work.
--
-- A message with predecessors waits in blocked, where dequeue never looks. It hangs on one of them
-- at a time, the newest that is unfinished, by a row of successor; when that one ends it moves on
-- to the next, or resumes at the front of its priority. There are no counters. The call that ends a
-- message resumes up to a thousand successors; the rest is a row of deferred. A death does not
-- resume: what waits is held, goes on or dies too, as on_predecessor_dead says, in steps of a
-- thousand. deferred holds everything that another transaction's locks prevented: slots, blocked
-- messages, rows of ended messages. maintain runs what is due of it.
--
--   archive -> find_awaited
--   store -> block_batch -> block
--   block -> refuse_unknown, await_predecessor, fail_with, defer
--   await_predecessor -> next_shown, read_end, rest_unfinished
--   release_links, delete_messages -> defer
--   push_dead -> propagate_deaths -> defer, find_awaited, propagate_death
--   propagate_death -> defer, unblock
--   unblock -> try_unblock
--   try_unblock -> lock_blocked, await_predecessor, fail_with
--   release_links, archive -> resume_successors -> defer, resume_blocked
--   resume_blocked -> unblock, propagate_deaths
--   purge_blocked, pop_expired, pop_waiting -> pop_blocked
--   maintain_queue -> run_deferred -> try_deferred
--   run_deferred_groups -> try_deferred -> resume_successors, resume_blocked, retry_propagation
--   retry_propagation -> read_end, propagate_deaths
--
-- Writes blocked, dead, dedup, delayed, group_waiting, message, deferred, successor. Only reads
-- finished, lane, queue.

function internal_find_awaited(p_queue_id in number, p_ids in rowq_ids)
return rowq_ids
is
-- purpose   Return those of these messages, whose rows the caller has locked, that others wait for, perhaps.
-- differs   no such helper elsewhere: part of internal_archive and internal_propagate_deaths
    v_awaited rowq_ids;
begin
    -- A statement of its own sees who has come to wait until the rows were locked.
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_awaited
    from table(p_ids) a
    join rowq_message m
      on m.queue_id = p_queue_id
     and m.message_id = a.column_value
    where m.has_successors = 1;
    return v_awaited;
end internal_find_awaited;

procedure internal_block_batch(
    p_queue_id in number,
    p_new      in t_new_messages,
    p_ready    in out nocopy t_numbers,
    p_later    in out nocopy t_numbers
)
is
-- purpose   Let new messages wait for their predecessors; p_ready and p_later have the places of those that are due and of those that are not, and keep those that wait for nothing.
-- locks     as internal_block
-- errors    RQ711
    v_ids        rowq_ids;
    v_places     rowq_ids;
    v_is_blocked boolean;
begin
    for i in 1 .. p_new.count loop
        if p_new(i).outcome = 'enqueued' and p_new(i).predecessor_ids is not null then
            v_ids := p_new(i).predecessor_ids;
            v_places := p_new(i).predecessor_positions;
            if v_places is not null then
                for k in 1 .. v_places.count loop
                    v_ids.extend;
                    v_ids(v_ids.last) := p_new(v_places(k)).message_id;
                end loop;
            end if;
            v_is_blocked := internal_block(
                p_queue_id, p_new(i).message_id, p_new(i).place, p_new(i).lane, p_new(i).due_at,
                p_new(i).group_key, v_ids, p_new(i).on_predecessor_dead
            );
            if v_is_blocked then
                p_ready.delete(i);
                p_later.delete(i);
            end if;
        end if;
    end loop;
end internal_block_batch;

function internal_block(
    p_queue_id        in number,
    p_message_id      in number,
    p_place           in number,
    p_lane            in number,
    p_due_at          in timestamp,
    p_group_key       in varchar2,
    p_predecessor_ids in rowq_ids,
    p_on_dead         in varchar2
)
return boolean
is
-- purpose   Let a new message wait for its predecessors, or fail with one; false where all have ended. p_place is its place in a batch, or 0.
-- locks     as internal_await_predecessor; new blocked, deferred and dead rows
-- errors    RQ711
    v_ids            rowq_ids;
    v_remaining_ids  rowq_ids;
    v_rest           clob;
    v_predecessor_id rowq_message.message_id%type;
    v_state          varchar2(20 char);
begin
    select distinct a.column_value
    bulk collect into v_ids
    from table(p_predecessor_ids) a
    where a.column_value > 0
    order by a.column_value desc;
    if v_ids.count = 0 then
        return false;
    end if;
    internal_refuse_unknown(p_message_id, p_place, v_ids(1));
    internal_await_predecessor(
        p_queue_id, p_message_id, v_ids, p_on_dead, v_state, v_predecessor_id, v_remaining_ids
    );
    if v_state = 'free' then
        return false;
    end if;
    if v_state = 'failed' then
        internal_fail_with(p_queue_id, p_message_id, p_lane, v_predecessor_id);
        return true;
    end if;

    v_rest := case when v_remaining_ids.count > 0 then ids(v_remaining_ids) end;
    insert into rowq_blocked (
        queue_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, remaining_ids
    )
    values (
        p_queue_id, p_message_id, p_lane, v_predecessor_id, p_due_at, p_on_dead, p_group_key,
        v_rest
    );
    if v_state = 'unsure' then
        internal_defer(p_queue_id, rowq_ids(p_message_id), null, 0);
    end if;
    return true;
end internal_block;

procedure internal_refuse_unknown(
    p_message_id in number,
    p_place      in number,
    p_newest_id  in number
)
is
-- purpose   Refuse a message whose newest predecessor has an id that was not given out yet.
-- errors    RQ711
-- differs   no such helper elsewhere: part of block
    v_given pls_integer;
begin
    -- An id that another instance has given out may be above the message's own. Those that the
    -- server keeps at hand count as given out: last_number is behind them.
    if p_newest_id < p_message_id then
        return;
    end if;
    select count(*) into v_given
    from user_sequences s
    where s.sequence_name = 'ROWQ_MESSAGE_SEQ'
      and s.last_number > p_newest_id;
    if v_given = 0 then
        internal_refuse(
            'predecessor_ids must name existing messages'
            || case when p_place > 0 then ' (message ' || internal_number_text(p_place) || ')' end
        );
    end if;
end internal_refuse_unknown;

procedure internal_await_predecessor(
    p_queue_id       in number,
    p_message_id     in number,
    p_ids            in rowq_ids,
    p_on_dead        in varchar2,
    p_state          out varchar2,
    p_predecessor_id out number,
    p_remaining_ids  out nocopy rowq_ids
)
is
-- purpose   Let a message wait for the first of these, newest first, that has not ended: waiting, free, failed, or unsure where others are at work.
-- locks     the predecessor's message row, tried only; a new successor row
    v_ids    rowq_ids := p_ids;
    v_place  pls_integer := 1;
    v_locked rowq_ids;
    v_held   rowq_ids;
    v_end    varchar2(20 char);
begin
    p_state := null;
    p_remaining_ids := rowq_ids();
    while p_state is null loop
        v_place := internal_next_shown(p_queue_id, v_ids, v_place);
        exit when v_place is null;
        p_predecessor_id := v_ids(v_place);
        -- Hold the row to the end of the transaction: whoever ends the predecessor waits for this
        -- one, or leaves a note to look again. This one waits for nobody.
        v_end := null;
        internal_lock_messages(p_queue_id, rowq_ids(p_predecessor_id), v_locked, v_held);
        if v_held.count > 0 then
            p_state := 'unsure';
        elsif v_locked.count > 0 then
            -- The archive keeps the message row for a while. Where the end is not seen here, the
            -- archiver frees what waits when it deletes the row.
            v_end := internal_read_end(p_queue_id, p_predecessor_id);
            if v_end = 'dead' and p_on_dead = 'fail' then
                p_state := 'failed';
            elsif v_end is null
                  or (v_end = 'dead' and coalesce(p_on_dead, 'hold') = 'hold') then
                p_state := 'waiting';
            end if;
        end if;
        if p_state is null and v_end = 'finished' then
            -- Thousands may have ended since the archiver was here: leave all of them out at once.
            v_ids := internal_rest_unfinished(p_queue_id, v_ids, v_place + 1);
            v_place := 1;
        elsif p_state is null then
            v_place := v_place + 1;
        end if;
    end loop;
    p_state := coalesce(p_state, 'free');

    if p_state = 'waiting' then
        update rowq_message m
        set m.has_successors = 1
        where m.queue_id = p_queue_id
          and m.message_id = p_predecessor_id;
        -- A message that is looked at again may have its row there already. Nobody else inserts
        -- this row, because who does holds the row of the predecessor.
        insert into rowq_successor (queue_id, predecessor_id, message_id)
        select p_queue_id, p_predecessor_id, p_message_id
        from dual
        where not exists (
            select null
            from rowq_successor s
            where s.queue_id = p_queue_id
              and s.predecessor_id = p_predecessor_id
              and s.message_id = p_message_id
        );
        v_place := v_place + 1;
    elsif p_state = 'unsure' then
        p_predecessor_id := null;
    end if;
    if p_state in ('waiting', 'unsure') then
        for i in v_place .. v_ids.count loop
            p_remaining_ids.extend;
            p_remaining_ids(p_remaining_ids.last) := v_ids(i);
        end loop;
    end if;
end internal_await_predecessor;

function internal_next_shown(p_queue_id in number, p_ids in rowq_ids, p_from in number)
return number
is
-- purpose   Return the place of the first of these messages, from p_from on, that has a body; null where none has.
-- differs   no such helper elsewhere: part of internal_await_predecessor
    -- Look for some at a time, because the first one is nearly always there.
    c_step   constant pls_integer := 100;
    v_from   pls_integer := p_from;
    v_to     pls_integer;
    v_some   rowq_ids;
    v_shown  t_numbers;
    v_places t_positions;
begin
    while v_from <= p_ids.count loop
        v_to := least(v_from + c_step - 1, p_ids.count);
        v_some := rowq_ids();
        for i in v_from .. v_to loop
            v_some.extend;
            v_some(v_some.last) := p_ids(i);
        end loop;
        select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
        bulk collect into v_shown
        from table(v_some) a
        join rowq_message m
          on m.queue_id = p_queue_id
         and m.message_id = a.column_value;
        for i in 1 .. v_shown.count loop
            v_places(internal_number_text(v_shown(i))) := i;
        end loop;
        for i in v_from .. v_to loop
            if v_places.exists(internal_number_text(p_ids(i))) then
                return i;
            end if;
        end loop;
        v_from := v_to + 1;
    end loop;
    return null;
end internal_next_shown;

function internal_read_end(p_queue_id in number, p_message_id in number)
return varchar2
is
-- purpose   Return whether a message that still has a body is finished or dead; null where it is neither.
-- differs   no such helper elsewhere: part of internal_await_predecessor
    v_state varchar2(20 char);
    cursor ends is
        select 'dead' as state
        from rowq_dead d
        where d.queue_id = p_queue_id
          and d.message_id = p_message_id
        union all
        select /*+ index_rs_asc(f rowq_finished_pk) */ 'finished' as state
        from rowq_finished f
        where f.queue_id = p_queue_id
          and f.finish_id >= (
              select l.floor_seq
              from rowq_lane l
              where l.queue_id = p_queue_id
                and l.lane = -3 /* finished */
          )
          and f.message_id = p_message_id;
begin
    open ends;
    fetch ends into v_state;
    close ends;
    return v_state;
end internal_read_end;

function internal_rest_unfinished(p_queue_id in number, p_ids in rowq_ids, p_from in number)
return rowq_ids
is
-- purpose   Return those of these messages, from the place p_from on, that the archiver has not still to move, newest first.
-- differs   no such helper elsewhere: part of internal_await_predecessor
    v_rest rowq_ids := rowq_ids();
    v_kept rowq_ids;
begin
    for i in p_from .. p_ids.count loop
        v_rest.extend;
        v_rest(v_rest.last) := p_ids(i);
    end loop;
    select a.column_value
    bulk collect into v_kept
    from table(v_rest) a
    where a.column_value not in (
        select /*+ hash_aj index_rs_asc(f rowq_finished_pk) */ f.message_id
        from rowq_finished f
        where f.queue_id = p_queue_id
          and f.finish_id >= (
              select l.floor_seq
              from rowq_lane l
              where l.queue_id = p_queue_id
                and l.lane = -3 /* finished */
          )
    )
    order by a.column_value desc;
    return v_kept;
end internal_rest_unfinished;

procedure internal_fail_with(
    p_queue_id       in number,
    p_message_id     in number,
    p_lane           in number,
    p_predecessor_id in number
)
is
-- purpose   Keep a message as dead whose predecessor is dead; free its dedup key. It has made no attempt, and has no slot of a group.
-- locks     a new dead row; the message row, which the caller holds already; a dedup row; a result
--           row
-- differs   no such helper elsewhere: part of internal_block and internal_propagate_deaths
    v_error     constant varchar2(100 char) :=
        'predecessor ' || internal_number_text(p_predecessor_id) || ' is dead';
    v_dedup_key rowq_message.dedup_key%type;
    v_key       raw(800);
    v_seconds   rowq_queue.result_seconds%type;
    v_failed    t_messages;
    v_results   t_clobs;
begin
    insert into rowq_dead (queue_id, message_id, lane, attempt, died_at)
    values (p_queue_id, p_message_id, p_lane, 0, sys_extract_utc(systimestamp));
    update rowq_message m
    set m.last_error = v_error
    where m.queue_id = p_queue_id
      and m.message_id = p_message_id
    returning m.dedup_key into v_dedup_key;
    if v_dedup_key is not null then
        v_key := utl_raw.cast_to_raw(v_dedup_key);
        delete from rowq_dedup d
        where d.queue_id = p_queue_id
          and d.dedup_key = v_key
          and d.message_id = p_message_id;
    end if;

    select max(q.result_seconds) into v_seconds
    from rowq_queue q
    where q.queue_id = p_queue_id;
    if v_seconds > 0 then
        v_failed(1).message_id := p_message_id;
        internal_push_result(p_queue_id, v_failed, 'dead', v_error, v_results);
    end if;
end internal_fail_with;

procedure internal_defer(
    p_queue_id        in number,
    p_message_ids     in rowq_ids,
    p_predecessor_ids in rowq_ids,
    p_are_dead        in number
)
is
-- purpose   Have maintain look again at blocked messages, or at what waits for predecessors that have ended; the same ids as both are messages that have ended, and whose rows another transaction has locked.
-- locks     new deferred rows; the first time its lane, passed over when locked
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    internal_open_lanes(p_queue_id, -4 /* deferred */);
    if p_message_ids is not null and p_predecessor_ids is not null then
        forall i in 1 .. p_message_ids.count
            insert into rowq_deferred (queue_id, due_at, deferred_id, message_id, predecessor_id)
            values (
                p_queue_id, v_now, rowq_claim_seq.nextval, p_message_ids(i), p_predecessor_ids(i)
            );
    elsif p_message_ids is not null then
        forall i in 1 .. p_message_ids.count
            insert into rowq_deferred (queue_id, due_at, deferred_id, message_id)
            values (p_queue_id, v_now, rowq_claim_seq.nextval, p_message_ids(i));
    else
        forall i in 1 .. p_predecessor_ids.count
            insert into rowq_deferred (queue_id, due_at, deferred_id, predecessor_id, is_hint)
            values (p_queue_id, v_now, rowq_claim_seq.nextval, p_predecessor_ids(i), p_are_dead);
    end if;
end internal_defer;

procedure internal_propagate_deaths(p_queue_id in number, p_dead_ids in rowq_ids)
is
-- purpose   Let what waits for dead messages do as it asked, and so on down the tree.
-- locks     message rows, tried only; as internal_propagate_death; new deferred rows
    -- A long tree dies in steps, and a wide one too, so that no transaction grows without end.
    c_most    constant pls_integer := 1000;
    v_count   pls_integer := 0;
    v_dead    rowq_ids := p_dead_ids;
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_awaited rowq_ids;
    v_failed  rowq_ids;
begin
    while v_dead.count > 0 loop
        -- Where a row is held, a producer is adding a message that waits: look again when it is
        -- there.
        internal_lock_messages(p_queue_id, v_dead, v_locked, v_held);
        if v_held.count > 0 then
            internal_defer(p_queue_id, null, v_held, 1);
        end if;
        v_awaited := internal_find_awaited(p_queue_id, v_locked);
        v_failed := rowq_ids();
        for i in 1 .. v_awaited.count loop
            if v_count + v_failed.count > c_most then
                internal_defer(p_queue_id, null, rowq_ids(v_awaited(i)), 1);
            else
                internal_propagate_death(p_queue_id, v_awaited(i), v_failed);
            end if;
        end loop;
        v_count := v_count + v_failed.count;
        v_dead := v_failed;
    end loop;
end internal_propagate_deaths;

procedure internal_propagate_death(
    p_queue_id in number,
    p_dead_id  in number,
    p_failed   in out nocopy rowq_ids
)
is
-- purpose   Let the messages go on that wait for a dead one and do not mind; those that fail with it are dead now, and are added to p_failed.
-- locks     successor rows, passing over locked ones; as internal_unblock; new deferred rows
-- differs   part of internal_propagate_deaths on PostgreSQL
    c_most  constant pls_integer := 1000;
    v_ids   rowq_ids;
    v_again rowq_ids;
    v_some  rowq_ids;
    cursor asking_rows is
        select /*+ index_rs_asc(s rowq_successor_pk) no_batch_table_access_by_rowid(s) */
               s.message_id
        from rowq_successor s
        where s.queue_id = p_queue_id
          and s.predecessor_id = p_dead_id
          and exists (
              select null
              from rowq_blocked b
              where b.queue_id = s.queue_id
                and b.message_id = s.message_id
                and b.on_dead in ('continue', 'fail')
          )
        order by s.queue_id, s.predecessor_id, s.message_id
        for update skip locked;
begin
    open asking_rows;
    fetch asking_rows bulk collect into v_ids limit c_most;
    close asking_rows;
    if v_ids.count = 0 then
        return;
    end if;
    if v_ids.count = c_most then
        internal_defer(p_queue_id, null, rowq_ids(p_dead_id), 1);
    end if;
    forall i in 1 .. v_ids.count
        delete from rowq_successor s
        where s.queue_id = p_queue_id
          and s.predecessor_id = p_dead_id
          and s.message_id = v_ids(i);
    internal_unblock(p_queue_id, v_ids, null, v_again, v_some);
    if v_again.count > 0 then
        internal_defer(p_queue_id, v_again, null, 0);
    end if;
    for i in 1 .. v_some.count loop
        p_failed.extend;
        p_failed(p_failed.last) := v_some(i);
    end loop;
end internal_propagate_death;

procedure internal_unblock(
    p_queue_id    in number,
    p_message_ids in rowq_ids,
    p_ended_id    in number,
    p_again       out nocopy rowq_ids,
    p_failed      out nocopy rowq_ids
)
is
-- purpose   Look again what blocked messages wait for, and let them go on where that is nothing. p_again are those that need another look, p_failed those that are dead with a predecessor now.
-- locks     as internal_try_unblock; new ready rows
    v_state         varchar2(20 char);
    v_lane          rowq_blocked.lane%type;
    v_ready         t_messages;
    v_next          pls_integer := 0;
    v_waiting_until rowq_queue.waiting_until%type;
    v_began         constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    p_again := rowq_ids();
    p_failed := rowq_ids();
    for i in 1 .. p_message_ids.count loop
        -- A message may name ten thousand others, so leave what takes long to maintain.
        if internal_seconds_since(v_began, sys_extract_utc(systimestamp)) > 0.2 then
            v_state := 'again';
        else
            internal_try_unblock(p_queue_id, p_message_ids(i), p_ended_id, v_state, v_lane);
        end if;
        if v_state = 'again' then
            p_again.extend;
            p_again(p_again.last) := p_message_ids(i);
        elsif v_state = 'failed' then
            p_failed.extend;
            p_failed(p_failed.last) := p_message_ids(i);
        elsif v_state = 'ready' then
            v_next := v_next + 1;
            v_ready(v_next).message_id := p_message_ids(i);
            v_ready(v_next).lane := v_lane;
            v_ready(v_next).attempt := 0;
        end if;
    end loop;

    if v_next > 0 then
        internal_push_ready(p_queue_id, v_ready);
        select q.waiting_until into v_waiting_until
        from rowq_queue q
        where q.queue_id = p_queue_id;
        internal_wake_waiters(p_queue_id, v_waiting_until);
    end if;
end internal_unblock;

procedure internal_try_unblock(
    p_queue_id   in number,
    p_message_id in number,
    p_ended_id   in number,
    p_state      out varchar2,
    p_lane       out number
)
is
-- purpose   Look again what a blocked message waits for: again, gone, waiting, moved, failed, or ready, with its lane.
-- locks     the blocked and the message row, tried only; as internal_await_predecessor and
--           internal_take_group_slot
-- differs   PostgreSQL does it in internal_unblock
    v_is_listed      boolean;
    v_predecessor_id rowq_blocked.predecessor_id%type;
    v_due_at         rowq_blocked.due_at%type;
    v_on_dead        rowq_blocked.on_dead%type;
    v_group_key      rowq_blocked.group_key%type;
    v_key            raw(800);
    v_rest           clob;
    v_listed         rowq_ids := rowq_ids();
    v_ids            rowq_ids := rowq_ids();
    v_remaining_ids  rowq_ids;
    v_locked         rowq_ids;
    v_held           rowq_ids;
    v_awaited_id     rowq_message.message_id%type;
    v_has_slot       boolean;
begin
    internal_lock_blocked(p_queue_id, p_message_id, p_state);
    if p_state <> 'locked' then
        return;
    end if;
    -- Read the row in a statement of its own, which sees it as it is now.
    select b.lane, b.predecessor_id, b.due_at, b.on_dead, b.group_key, b.remaining_ids
    into p_lane, v_predecessor_id, v_due_at, v_on_dead, v_group_key, v_rest
    from rowq_blocked b
    where b.queue_id = p_queue_id
      and b.message_id = p_message_id;

    p_state := 'free';
    if v_predecessor_id <> coalesce(p_ended_id, 0) then
        v_ids.extend;
        v_ids(1) := v_predecessor_id;
    end if;
    if v_rest is not null then
        v_is_listed := internal_is_id_list(v_rest, v_listed);
        for i in 1 .. v_listed.count loop
            v_ids.extend;
            v_ids(v_ids.last) := v_listed(i);
        end loop;
    end if;
    if v_ids.count > 0 then
        internal_await_predecessor(
            p_queue_id, p_message_id, v_ids, v_on_dead, p_state, v_awaited_id, v_remaining_ids
        );
    end if;

    if p_state = 'unsure' then
        p_state := 'again';
    elsif p_state = 'waiting' then
        v_rest := case when v_remaining_ids.count > 0 then ids(v_remaining_ids) end;
        update rowq_blocked b
        set b.predecessor_id = v_awaited_id,
            b.remaining_ids = v_rest
        where b.queue_id = p_queue_id
          and b.message_id = p_message_id;
    elsif p_state = 'failed' then
        -- Its row is to have the error, and a producer may be adding a message that waits for it.
        internal_lock_messages(p_queue_id, rowq_ids(p_message_id), v_locked, v_held);
        if v_locked.count = 0 then
            p_state := 'again';
        else
            internal_fail_with(p_queue_id, p_message_id, p_lane, v_awaited_id);
        end if;
    elsif v_due_at > sys_extract_utc(systimestamp) then
        insert into rowq_delayed (queue_id, due_at, message_id, lane, group_key)
        values (p_queue_id, v_due_at, p_message_id, p_lane, v_group_key);
        p_state := 'moved';
    elsif v_group_key is not null then
        v_key := utl_raw.cast_to_raw(v_group_key);
        v_has_slot := internal_take_group_slot(p_queue_id, v_key, false);
        if v_has_slot is null then
            p_state := 'again';
        elsif v_has_slot then
            -- Groups take turns.
            p_state := 'ready';
        else
            insert into rowq_group_waiting (queue_id, group_key, message_id, lane)
            values (p_queue_id, v_key, p_message_id, p_lane);
            p_state := 'moved';
        end if;
    else
        -- What has been begun is finished first.
        p_state := 'ready';
        p_lane := trunc(p_lane / 2) * 2;
    end if;

    if p_state in ('moved', 'ready', 'failed') then
        delete from rowq_blocked b
        where b.queue_id = p_queue_id
          and b.message_id = p_message_id;
    end if;
end internal_try_unblock;

procedure internal_lock_blocked(p_queue_id in number, p_message_id in number, p_state out varchar2)
is
-- purpose   Lock the row of a blocked message: locked, again where somebody holds it, or gone.
-- locks     a blocked row, passed over when locked
-- differs   no such helper elsewhere: part of internal_unblock
    -- ORA-08177: this transaction is serializable, and another has written to the row since then.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_shown pls_integer;
    v_id    rowq_blocked.message_id%type;
    cursor blocked_row is
        select b.message_id
        from rowq_blocked b
        where b.queue_id = p_queue_id
          and b.message_id = p_message_id
        for update skip locked;
begin
    begin
        open blocked_row;
        fetch blocked_row into v_id;
        close blocked_row;
    exception
        when e_not_serial then
            v_id := null;
    end;
    -- Look again, in a statement of its own: somebody is cancelling the message, perhaps, or it has
    -- gone on.
    select count(*) into v_shown
    from rowq_blocked b
    where b.queue_id = p_queue_id
      and b.message_id = p_message_id;
    p_state := case
        when v_shown = 0 then 'gone'
        when v_id is null then 'again'
        else 'locked'
    end;
end internal_lock_blocked;

procedure internal_resume_successors(p_queue_id in number, p_predecessor_id in number)
is
-- purpose   Let the messages go on that have waited for this one, which has ended; leave to maintain those that cannot go on now.
-- locks     successor rows, passing over locked ones; as internal_resume_blocked; new deferred rows
    c_most  constant pls_integer := 1000;
    v_ids   rowq_ids;
    v_again rowq_ids;
    cursor waiting_rows is
        select /*+ index_rs_asc(s rowq_successor_pk) no_batch_table_access_by_rowid(s) */
               s.message_id
        from rowq_successor s
        where s.queue_id = p_queue_id
          and s.predecessor_id = p_predecessor_id
        order by s.queue_id, s.predecessor_id, s.message_id
        for update skip locked;
begin
    open waiting_rows;
    fetch waiting_rows bulk collect into v_ids limit c_most;
    close waiting_rows;
    if v_ids.count = 0 then
        return;
    end if;
    if v_ids.count = c_most then
        internal_defer(p_queue_id, null, rowq_ids(p_predecessor_id), 0);
    end if;
    forall i in 1 .. v_ids.count
        delete from rowq_successor s
        where s.queue_id = p_queue_id
          and s.predecessor_id = p_predecessor_id
          and s.message_id = v_ids(i);
    internal_resume_blocked(p_queue_id, v_ids, p_predecessor_id, v_again);
    if v_again.count > 0 then
        internal_defer(p_queue_id, v_again, null, 0);
    end if;
end internal_resume_successors;

procedure internal_resume_blocked(
    p_queue_id    in number,
    p_message_ids in rowq_ids,
    p_ended_id    in number,
    p_again       out nocopy rowq_ids
)
is
-- purpose   Let blocked messages go on that wait for nothing any more; those that fail with a predecessor are dead. p_again are those that need another look.
-- locks     as internal_unblock and internal_propagate_deaths
    v_failed rowq_ids;
begin
    internal_unblock(p_queue_id, p_message_ids, p_ended_id, p_again, v_failed);
    if v_failed.count > 0 then
        internal_propagate_deaths(p_queue_id, v_failed);
    end if;
end internal_resume_blocked;

procedure internal_pop_blocked(
    p_queue_id in number,
    p_ids      in t_numbers,
    p_lanes    in t_numbers,
    p_messages in out nocopy t_messages
)
is
-- purpose   Delete blocked rows that are locked, and append their messages.
-- locks     blocked rows, which the caller holds already
-- differs   no such helper on PostgreSQL: part of purge_queue and internal_pop_waiting
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_ids.count
        delete from rowq_blocked b
        where b.queue_id = p_queue_id
          and b.message_id = p_ids(i);
    -- Take a message only if this statement has deleted its row, so that no other session has the
    -- message too.
    for i in 1 .. p_ids.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            p_messages(v_next).message_id := p_ids(i);
            p_messages(v_next).lane := p_lanes(i);
            p_messages(v_next).attempt := 0;
            p_messages(v_next).is_without_slot := 1;
        end if;
    end loop;
end internal_pop_blocked;

function internal_run_deferred(p_queue_id in number, p_limit in number)
return number
is
-- purpose   Look again at up to p_limit slots and messages that were left; return for how many that was enough.
-- locks     deferred rows, passing over locked ones; as internal_try_deferred
    type t_note is record (
        due_at         rowq_deferred.due_at%type,
        deferred_id    rowq_deferred.deferred_id%type,
        group_key      rowq_deferred.group_key%type,
        is_hint        rowq_deferred.is_hint%type,
        message_id     rowq_deferred.message_id%type,
        predecessor_id rowq_deferred.predecessor_id%type
    );
    type t_notes is table of t_note index by pls_integer;
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue_id, -4 /* deferred */));
    v_probe     rowq_deferred.deferred_id%type;
    v_notes     t_notes;
    v_is_solved boolean;
    v_solved    pls_integer := 0;
    cursor due is
        select /*+ index_rs_asc(r rowq_deferred_pk) */ r.deferred_id
        from rowq_deferred r
        where r.queue_id = p_queue_id
          and r.due_at >= v_since
          and r.due_at <= v_now
        order by r.queue_id, r.due_at, r.deferred_id;
    cursor due_rows is
        select /*+ index_rs_asc(r rowq_deferred_pk) no_batch_table_access_by_rowid(r) */
               r.due_at, r.deferred_id, r.group_key, r.is_hint, r.message_id, r.predecessor_id
        from rowq_deferred r
        where r.queue_id = p_queue_id
          and r.due_at >= v_since
          and r.due_at <= v_now
        order by r.queue_id, r.due_at, r.deferred_id
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
    fetch due_rows bulk collect into v_notes limit p_limit;
    close due_rows;
    for i in 1 .. v_notes.count loop
        -- What takes long is left to the next call.
        exit when i > 1
             and internal_seconds_since(v_now, sys_extract_utc(systimestamp)) > 0.5;
        savepoint rowq_note_part;
        v_is_solved := internal_try_deferred(
            p_queue_id, v_notes(i).group_key, v_notes(i).message_id, v_notes(i).predecessor_id,
            v_notes(i).is_hint
        );
        -- A row that is not solved stays as it is: a producer that is idle in its transaction must
        -- not make every look write.
        if v_is_solved then
            delete from rowq_deferred r
            where r.queue_id = p_queue_id
              and r.due_at = v_notes(i).due_at
              and r.deferred_id = v_notes(i).deferred_id;
            -- Another session may have solved it after the cursor was opened. Once is enough: a
            -- slot must not be passed on twice.
            if sql%rowcount = 0 then
                rollback to savepoint rowq_note_part;
            else
                v_solved := v_solved + 1;
            end if;
        end if;
    end loop;
    return v_solved;
end internal_run_deferred;

function internal_try_deferred(
    p_queue_id       in number,
    p_group_key      in raw,
    p_message_id     in number,
    p_predecessor_id in number,
    p_is_hint        in number
)
return boolean
is
-- purpose   Look again at what a row of deferred names; return whether that was enough.
-- locks     as internal_pass_group_slot, internal_add_group_slots, internal_resume_blocked,
--           internal_resume_successors, internal_retry_propagation and internal_lock_messages
-- differs   no such helper elsewhere: part of internal_run_deferred
    v_again         rowq_ids;
    v_locked        rowq_ids;
    v_held          rowq_ids;
    v_is_left       boolean;
    v_pause_seconds number;
begin
    if p_message_id = p_predecessor_id then
        -- It has ended, and its row was locked. Its keys were freed then.
        internal_lock_messages(p_queue_id, rowq_ids(p_message_id), v_locked, v_held);
        if v_held.count > 0 then
            return false;
        end if;
        delete from rowq_message m
        where m.queue_id = p_queue_id
          and m.message_id = p_message_id;
        internal_resume_successors(p_queue_id, p_message_id);
        return true;
    end if;
    if p_message_id is not null then
        internal_resume_blocked(p_queue_id, rowq_ids(p_message_id), null, v_again);
        return v_again.count = 0;
    end if;
    if p_predecessor_id is not null then
        if p_is_hint = 1 then
            return internal_retry_propagation(p_queue_id, p_predecessor_id);
        end if;
        internal_resume_successors(p_queue_id, p_predecessor_id);
        return true;
    end if;
    if p_is_hint = 1 then
        return internal_add_group_slots(p_queue_id, p_group_key);
    end if;
    internal_pass_group_slot(p_queue_id, p_group_key, true, v_is_left, v_pause_seconds);
    return not v_is_left;
end internal_try_deferred;

function internal_retry_propagation(p_queue_id in number, p_message_id in number)
return boolean
is
-- purpose   Look again what waits for a dead message; false where a producer is still adding something that does.
-- locks     the message row, tried only; as internal_propagate_deaths
    v_locked rowq_ids;
    v_held   rowq_ids;
begin
    internal_lock_messages(p_queue_id, rowq_ids(p_message_id), v_locked, v_held);
    if v_held.count > 0 then
        return false;
    end if;
    -- One that was reset meanwhile is waited for as before.
    if v_locked.count > 0 and internal_read_end(p_queue_id, p_message_id) = 'dead' then
        internal_propagate_deaths(p_queue_id, v_locked);
    end if;
    return true;
end internal_retry_propagation;
