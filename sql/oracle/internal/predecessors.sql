-- Predecessors: messages that wait for others to end, and deferred work.
--
-- A message with predecessors waits in blocked, which dequeue does not read. A row of successor
-- links it to one predecessor at a time, the newest unfinished one. When that ends, the message is
-- linked to the next, or resumes at the front of its priority. The call that ends a message resumes
-- up to 1000 successors and defers the rest. If a predecessor dies, its successors are held, resume
-- or die, as their on_predecessor_dead says, 1000 at a time. deferred has the work that another
-- transaction's locks prevented: slots, blocked messages, rows of ended messages. maintain runs it.
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
-- purpose   Return the messages that may have successors. The caller has locked their rows.
    v_awaited rowq_ids;
begin
    -- A new statement sees the successors added before the rows were locked.
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
-- purpose   Let new messages wait for their predecessors; p_ready and p_later lose those that wait.
-- locks     as internal_block
-- errors    RQ711
-- p_ready and p_later have the positions of messages that are due, and of those that are delayed.
    v_ids        rowq_ids;
    v_positions  rowq_ids;
    v_is_blocked boolean;
begin
    for i in 1 .. p_new.count loop
        if p_new(i).outcome = 'enqueued' and p_new(i).predecessor_ids is not null then
            v_ids := p_new(i).predecessor_ids;
            v_positions := p_new(i).predecessor_positions;
            if v_positions is not null then
                for k in 1 .. v_positions.count loop
                    v_ids.extend;
                    v_ids(v_ids.last) := p_new(v_positions(k)).message_id;
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
    p_position        in number,
    p_lane            in number,
    p_due_at          in timestamp,
    p_group_key       in varchar2,
    p_predecessor_ids in rowq_ids,
    p_on_dead         in varchar2
)
return boolean
is
-- purpose   Let a new message wait for its predecessors, or fail; return false if all have ended.
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
    internal_refuse_unknown(p_message_id, p_position, v_ids(1));
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
    p_position   in number,
    p_newest_id  in number
)
is
-- purpose   Refuse a message whose newest predecessor has an id that is not assigned yet.
-- errors    RQ711
    v_assigned pls_integer;
begin
    -- Another instance may have assigned an id above the message's own. Ids in the sequence's cache
    -- count as assigned: last_number is behind them.
    if p_newest_id < p_message_id then
        return;
    end if;
    select count(*) into v_assigned
    from user_sequences s
    where s.sequence_name = 'ROWQ_MESSAGE_SEQ'
      and s.last_number > p_newest_id;
    if v_assigned = 0 then
        internal_refuse(
            'predecessor_ids must name existing messages'
            || case
                when p_position > 0 then ' (message ' || internal_number_text(p_position) || ')'
            end
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
-- purpose   Let a message wait for the newest unfinished of its predecessors.
-- locks     the predecessor's message row, skipped if locked; a new successor row
-- p_ids: newest first. p_state: waiting, free, failed, or unsure if another session has locked the
-- predecessor.
    v_ids    rowq_ids := p_ids;
    v_position pls_integer := 1;
    v_locked rowq_ids;
    v_held   rowq_ids;
    v_end    varchar2(20 char);
begin
    p_state := null;
    p_remaining_ids := rowq_ids();
    while p_state is null loop
        v_position := internal_next_shown(p_queue_id, v_ids, v_position);
        exit when v_position is null;
        p_predecessor_id := v_ids(v_position);
        -- Lock the row until the transaction ends, without waiting: a session that ends the
        -- predecessor waits, or defers a check.
        v_end := null;
        internal_lock_messages(p_queue_id, rowq_ids(p_predecessor_id), v_locked, v_held);
        if v_held.count > 0 then
            p_state := 'unsure';
        elsif v_locked.count > 0 then
            -- The archiver deletes the message row later, and resumes messages that did not see the
            -- end here.
            v_end := internal_read_end(p_queue_id, p_predecessor_id);
            if v_end = 'dead' and p_on_dead = 'fail' then
                p_state := 'failed';
            elsif v_end is null
                  or (v_end = 'dead' and coalesce(p_on_dead, 'hold') = 'hold') then
                p_state := 'waiting';
            end if;
        end if;
        if p_state is null and v_end = 'finished' then
            -- Thousands may have ended since the last archive: skip all of them at once.
            v_ids := internal_rest_unfinished(p_queue_id, v_ids, v_position + 1);
            v_position := 1;
        elsif p_state is null then
            v_position := v_position + 1;
        end if;
    end loop;
    p_state := coalesce(p_state, 'free');

    if p_state = 'waiting' then
        update rowq_message m
        set m.has_successors = 1
        where m.queue_id = p_queue_id
          and m.message_id = p_predecessor_id;
        -- The row may exist from an earlier check. No other session inserts it, because that
        -- requires the lock on the predecessor's row.
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
        v_position := v_position + 1;
    elsif p_state = 'unsure' then
        p_predecessor_id := null;
    end if;
    if p_state in ('waiting', 'unsure') then
        for i in v_position .. v_ids.count loop
            p_remaining_ids.extend;
            p_remaining_ids(p_remaining_ids.last) := v_ids(i);
        end loop;
    end if;
end internal_await_predecessor;

function internal_next_shown(p_queue_id in number, p_ids in rowq_ids, p_from in number)
return number
is
-- purpose   Return the position of the first of these messages, from p_from on, that has a body, or null.
    -- Read 100 at a time, because the first one nearly always exists.
    c_step   constant pls_integer := 100;
    v_from   pls_integer := p_from;
    v_to     pls_integer;
    v_some   rowq_ids;
    v_shown  t_numbers;
    v_positions t_positions;
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
            v_positions(internal_number_text(v_shown(i))) := i;
        end loop;
        for i in v_from .. v_to loop
            if v_positions.exists(internal_number_text(p_ids(i))) then
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
-- purpose   Return whether a message that still has a body is finished or dead; null if neither.
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
-- purpose   Return those of these messages, from p_from on, that do not wait for the archiver.
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
-- purpose   Make a message dead because its predecessor is dead, and release its dedup key.
-- locks     a new dead row; the message row, which the caller has locked; a dedup row; a result row
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
-- purpose   Defer a check of blocked messages, or of messages whose predecessors have ended.
-- locks     new deferred rows; the first time its lane, skipped if locked
-- The same ids in both lists: ended messages whose rows another transaction has locked.
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
-- purpose   Propagate the deaths of messages to their successors, level by level.
-- locks     message rows, skipped if locked; as internal_propagate_death; new deferred rows
    -- A deep or wide tree dies in steps, to keep transactions short.
    c_most    constant pls_integer := 1000;
    v_count   pls_integer := 0;
    v_dead    rowq_ids := p_dead_ids;
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_awaited rowq_ids;
    v_failed  rowq_ids;
begin
    while v_dead.count > 0 loop
        -- If a row is locked, a producer is adding a successor: defer the check.
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
-- purpose   Resume successors of a dead message that continue; add those that died with it to p_failed.
-- locks     successor rows, skipping locked ones; as internal_unblock; new deferred rows
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
-- purpose   Check what blocked messages wait for, and resume those that wait for nothing.
-- locks     as internal_try_unblock; new ready rows
-- p_again: messages to retry. p_failed: messages that died with a predecessor.
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
        -- A message may name 10000 predecessors: leave slow work to maintain.
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
-- purpose   Check what a blocked message waits for: again, gone, waiting, moved, failed or ready.
-- locks     the blocked and the message row, skipped if locked; as internal_await_predecessor and
--           internal_take_group_slot
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
    -- Read the row in a new statement, which sees its latest version.
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
        -- Its row gets the error, and a producer may be adding a successor to it.
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
        -- Messages that have been blocked go to the front.
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
-- purpose   Lock the row of a blocked message: locked, again if another session holds it, or gone.
-- locks     a blocked row, skipped if locked
    -- ORA-08177: the transaction is serializable, and another session has changed the row since it
    -- began.
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
    -- Read again in a new statement: another session may be cancelling the message, or it has
    -- resumed.
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
-- purpose   Resume the messages that waited for this ended one; defer those that cannot resume now.
-- locks     successor rows, skipping locked ones; as internal_resume_blocked; new deferred rows
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
-- purpose   Resume blocked messages, or make them dead with a predecessor; return those to retry.
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
-- locks     blocked rows, which the caller has locked
    v_next pls_integer := p_messages.count;
begin
    forall i in 1 .. p_ids.count
        delete from rowq_blocked b
        where b.queue_id = p_queue_id
          and b.message_id = p_ids(i);
    -- Take a message only if this statement has deleted its row: another session may have been
    -- first.
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
-- purpose   Run up to p_limit deferred items; return how many succeeded.
-- locks     deferred rows, skipping locked ones; as internal_try_deferred
    type t_item is record (
        due_at         rowq_deferred.due_at%type,
        deferred_id    rowq_deferred.deferred_id%type,
        group_key      rowq_deferred.group_key%type,
        is_hint        rowq_deferred.is_hint%type,
        message_id     rowq_deferred.message_id%type,
        predecessor_id rowq_deferred.predecessor_id%type
    );
    type t_items is table of t_item index by pls_integer;
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_since constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue_id, -4 /* deferred */));
    v_probe     rowq_deferred.deferred_id%type;
    v_items     t_items;
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
    -- Read without locks first, so that a call with nothing to do begins no transaction.
    open due;
    fetch due into v_probe;
    close due;
    if v_probe is null then
        return 0;
    end if;

    open due_rows;
    fetch due_rows bulk collect into v_items limit p_limit;
    close due_rows;
    for i in 1 .. v_items.count loop
        -- Leave slow work to the next call.
        exit when i > 1
             and internal_seconds_since(v_now, sys_extract_utc(systimestamp)) > 0.5;
        savepoint rowq_deferred_item;
        v_is_solved := internal_try_deferred(
            p_queue_id, v_items(i).group_key, v_items(i).message_id, v_items(i).predecessor_id,
            v_items(i).is_hint
        );
        -- Leave unresolved rows unchanged: an idle producer transaction must not cause writes.
        if v_is_solved then
            delete from rowq_deferred r
            where r.queue_id = p_queue_id
              and r.due_at = v_items(i).due_at
              and r.deferred_id = v_items(i).deferred_id;
            -- Another session may have run it since the cursor was opened. A slot must not be
            -- passed on twice.
            if sql%rowcount = 0 then
                rollback to savepoint rowq_deferred_item;
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
-- purpose   Run a deferred item; return whether it succeeded.
-- locks     as the helpers that it calls
    v_again         rowq_ids;
    v_locked        rowq_ids;
    v_held          rowq_ids;
    v_is_left       boolean;
    v_pause_seconds number;
begin
    if p_message_id = p_predecessor_id then
        -- It had ended while its row was locked. Its dedup key and slot were released then.
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
-- purpose   Propagate a death again; return false if a producer is adding a successor.
-- locks     the message row, skipped if locked; as internal_propagate_deaths
    v_locked rowq_ids;
    v_held   rowq_ids;
begin
    internal_lock_messages(p_queue_id, rowq_ids(p_message_id), v_locked, v_held);
    if v_held.count > 0 then
        return false;
    end if;
    -- If the message was reset, its successors wait as before.
    if v_locked.count > 0 and internal_read_end(p_queue_id, p_message_id) = 'dead' then
        internal_propagate_deaths(p_queue_id, v_locked);
    end if;
    return true;
end internal_retry_propagation;
