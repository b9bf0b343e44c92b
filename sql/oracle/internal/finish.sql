-- Finish: how messages leave a claim, and how they end.
--
-- The claim is the fence. A call that finishes messages first deletes the claim, or takes them out
-- of it; a second session finds nothing there, and its messages are stale. reap does the same for
-- expired claims. An ended message is deleted, or kept in finished for the archive, and its links
-- are released in the same transaction: dedup key, group slot, successors. A dead message moves to
-- dead and keeps its row. An end does not wait for a producer that has locked the message's row:
-- maintain deletes the row by a row of deferred.
--
-- But fail_now, retry_later, and release with a delay wait for a producer that has just named one
-- of their messages: only the row can store the error and the time.
--
--   complete, complete_and_dequeue -> complete_claim -> pop_claimed, finish, outcomes
--   retry_later, fail_now, release, ... -> finish -> delete_messages, read_links, release_links
--   delete_messages -> lock_messages, release_links, read_links
--   postpone, await_predecessor, propagate_deaths, ... -> lock_messages
--   fail_now, release, ... -> outcomes
--   retry_later, fail_now, ... -> pop_claimed -> refuse_claim, claimed_messages
--   extend_lease -> refuse_claim
--   trim_claim -> claimed_messages
--   retry_later, release -> back_off
--   retry_later -> split_by_attempts
--   retry_later, fail_now, release, ... -> set_outcomes
--   retry_later, fail_now -> push_dead -> record_error, read_links, release_links
--   retry_later -> record_error -> lock_messages
--   retry_later -> retry_outcomes -> outcomes
--   retry_later, fail_now, release -> split_by_cancel
--   release, trim_claim -> as_front
--   cancel -> set_leased -> set_outcomes
--   cancel_many -> waiting_of
--   reset, discard_dead -> lock_dead
--   reset -> pop_dead -> read_links, delete_dead, outcomes
--   discard_dead, purge_waiting, pop_waiting -> delete_dead
--   maintain_queue -> reap -> claimed_messages, split_by_cancel, lock_messages, finish,
--       split_by_attempts, as_front, record_error, push_dead
--
-- Writes claim, dead, dedup, finished, leased, message.

procedure internal_complete_claim(
    p_queue_name  in varchar2,
    p_claim_id    in number,
    p_message_ids in clob,
    p_results     in clob,
    p_lines       out nocopy rowq_lines
)
is
-- purpose   Complete messages of a claim, and return the outcome of each.
-- locks     as complete
-- errors    RQ701 RQ711 RQ721
    v_queue    t_queue;
    v_ids      rowq_ids;
    v_claim    t_claim;
    v_messages t_messages;
    v_given    t_clobs;
    v_results  t_clobs;
begin
    v_ids := internal_read_id_list(p_message_ids);
    internal_check_claim(p_claim_id);
    v_queue := internal_require_queue(p_queue_name);
    if p_results is not null then
        internal_read_results(
            p_results, case when v_ids is null then 1 else v_ids.count end, v_queue, v_given
        );
    end if;

    internal_pop_claimed(v_queue.queue_id, p_claim_id, v_ids, v_claim, v_messages);
    if p_results is not null and v_ids is null and v_messages.count > 1 then
        internal_refuse('results without message_ids requires a claim of exactly one message');
    end if;
    internal_finish(v_queue, v_messages, 'completed');
    if v_queue.result_seconds > 0 then
        v_results := internal_results_of(v_messages, v_ids, v_given);
        internal_push_result(v_queue.queue_id, v_messages, 'completed', null, v_results);
    end if;
    if v_queue.history_days > 0 then
        internal_push_history(v_queue.queue_id, v_claim, v_messages, 'completed', null);
    end if;
    p_lines := internal_outcomes(v_ids, v_messages, 'completed');
end internal_complete_claim;

procedure internal_finish(
    p_queue    in t_queue,
    p_messages in t_messages,
    p_state    in varchar2
)
is
-- purpose   Delete ended messages or pass them to the archive; release their links and store results.
-- locks     as internal_delete_messages and internal_release_links; new finished rows; result rows
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_finish_id  rowq_finished.finish_id%type;
    v_ids        t_numbers;
    v_dedup_keys t_texts;
    v_group_keys t_texts;
    v_awaited    t_numbers;
    v_results    t_clobs;
begin
    if p_messages.count = 0 then
        return;
    end if;
    if p_queue.archive_days = 0 then
        internal_delete_messages(p_queue.queue_id, p_messages);
    else
        v_finish_id := rowq_claim_seq.nextval;
        forall i in 1 .. p_messages.count
            insert into rowq_finished (
                queue_id, finish_id, message_id, lane, attempt, state, finished_at
            )
            values (
                p_queue.queue_id, v_finish_id, p_messages(i).message_id, p_messages(i).lane,
                p_messages(i).attempt, p_state, v_now
            );
        -- internal_archive releases successors that are not committed yet.
        internal_read_links(
            p_queue.queue_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited
        );
        internal_release_links(
            p_queue.queue_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited
        );
    end if;
    if p_queue.result_seconds > 0 and p_state <> 'completed' then
        internal_push_result(p_queue.queue_id, p_messages, p_state, null, v_results);
    end if;
end internal_finish;

procedure internal_delete_messages(p_queue_id in number, p_messages in t_messages)
is
-- purpose   Delete messages and release their links; defer rows locked by another transaction.
-- locks     message rows, skipping locked ones; as internal_release_links; new deferred rows
    v_wanted     rowq_ids := internal_ids_of(p_messages);
    v_locked     rowq_ids;
    v_held       rowq_ids;
    v_left       t_messages;
    v_ids        t_numbers;
    v_dedup_keys t_texts;
    v_group_keys t_texts;
    v_awaited    t_numbers;
begin
    internal_lock_messages(p_queue_id, v_wanted, v_locked, v_held);
    forall i in 1 .. v_locked.count
        delete from rowq_message m
        where m.queue_id = p_queue_id
          and m.message_id = v_locked(i)
        returning m.message_id, m.dedup_key, m.group_key, m.has_successors
        bulk collect into v_ids, v_dedup_keys, v_group_keys, v_awaited;
    internal_release_links(p_queue_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited);

    if v_held.count > 0 then
        -- A producer may name it as a predecessor and never commit. The message has ended, so defer
        -- only its row and what that producer adds.
        internal_defer(p_queue_id, v_held, v_held, 0);
        for i in 1 .. v_held.count loop
            v_left(i).message_id := v_held(i);
        end loop;
        internal_read_links(p_queue_id, v_left, v_ids, v_dedup_keys, v_group_keys, v_awaited);
        internal_release_links(
            p_queue_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_awaited
        );
    end if;
end internal_delete_messages;

procedure internal_lock_messages(
    p_queue_id in number,
    p_ids      in rowq_ids,
    p_locked   out nocopy rowq_ids,
    p_held     out nocopy rowq_ids
)
is
-- purpose   Lock message rows that are free (p_locked); return existing rows locked by others (p_held).
-- locks     message rows, skipping locked ones
    -- ORA-08177: this transaction is serializable, and the row was changed after it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_most   constant pls_integer := 10000;
    v_places t_positions;
    v_shown  t_numbers;
    cursor message_rows is
        select /*+ leading(a@asked m) use_nl(m) index(m rowq_message_pk) */ m.message_id
        from rowq_message m
        where m.queue_id = p_queue_id
          and m.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        for update skip locked;
begin
    p_locked := rowq_ids();
    p_held := rowq_ids();
    begin
        open message_rows;
        fetch message_rows bulk collect into p_locked limit c_most;
        close message_rows;
    exception
        when e_not_serial then
            p_locked := rowq_ids();
    end;
    if p_locked.count = p_ids.count then
        return;
    end if;

    for i in 1 .. p_locked.count loop
        v_places(internal_number_text(p_locked(i))) := i;
    end loop;
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_shown
    from table(p_ids) a
    join rowq_message m
      on m.queue_id = p_queue_id
     and m.message_id = a.column_value;
    for i in 1 .. v_shown.count loop
        if not v_places.exists(internal_number_text(v_shown(i))) then
            p_held.extend;
            p_held(p_held.last) := v_shown(i);
        end if;
    end loop;
end internal_lock_messages;

procedure internal_release_links(
    p_queue_id   in number,
    p_messages   in t_messages,
    p_ids        in t_numbers,
    p_dedup_keys in t_texts,
    p_group_keys in t_texts,
    p_awaited    in t_numbers
)
is
-- purpose   Release the dedup keys, group slots and successors of ended messages.
-- locks     dedup rows; as internal_release_group_slots and internal_resume_successors; new
--           deferred rows
    v_began        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_ids          t_numbers;
    v_keys         t_keys;
    v_without_slot t_positions;
    v_group_keys   t_keys;
begin
    for i in 1 .. p_ids.count loop
        if p_dedup_keys(i) is not null then
            v_ids(v_ids.count + 1) := p_ids(i);
            v_keys(v_keys.count + 1) := utl_raw.cast_to_raw(p_dedup_keys(i));
        end if;
    end loop;
    -- Compare message_id too: another message may own the key now, because a dead message releases
    -- its key.
    forall i in 1 .. v_keys.count
        delete from rowq_dedup d
        where d.queue_id = p_queue_id
          and d.dedup_key = v_keys(i)
          and d.message_id = v_ids(i);

    for i in 1 .. p_messages.count loop
        if p_messages(i).is_without_slot = 1 then
            v_without_slot(internal_number_text(p_messages(i).message_id)) := i;
        end if;
    end loop;
    for i in 1 .. p_ids.count loop
        if p_group_keys(i) is not null
           and not v_without_slot.exists(internal_number_text(p_ids(i))) then
            v_group_keys(v_group_keys.count + 1) := utl_raw.cast_to_raw(p_group_keys(i));
        end if;
    end loop;
    internal_release_group_slots(p_queue_id, v_group_keys);
    for i in 1 .. p_ids.count loop
        -- Many messages may have ended, each with a thousand successors: defer the rest after 500
        -- ms.
        if p_awaited(i) = 1
           and internal_seconds_since(v_began, sys_extract_utc(systimestamp)) > 0.5 then
            internal_defer(p_queue_id, null, rowq_ids(p_ids(i)), 0);
        elsif p_awaited(i) = 1 then
            internal_resume_successors(p_queue_id, p_ids(i));
        end if;
    end loop;
end internal_release_links;

procedure internal_read_links(
    p_queue_id   in number,
    p_messages   in t_messages,
    p_ids        out nocopy t_numbers,
    p_dedup_keys out nocopy t_texts,
    p_group_keys out nocopy t_texts,
    p_awaited    out nocopy t_numbers
)
is
-- purpose   Return the links of the messages that have any, as internal_release_links takes them.
    v_wanted rowq_ids := internal_ids_of(p_messages);
begin
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */
           m.message_id, m.dedup_key, m.group_key, m.has_successors
    bulk collect into p_ids, p_dedup_keys, p_group_keys, p_awaited
    from table(v_wanted) a
    join rowq_message m
      on m.queue_id = p_queue_id
     and m.message_id = a.column_value
    where m.dedup_key is not null
       or m.group_key is not null
       or m.has_successors = 1;
end internal_read_links;

function internal_outcomes(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_outcome  in varchar2,
    p_other    in varchar2 default 'stale'
)
return rowq_lines
is
-- purpose   Return the outcome of each message: p_outcome for p_messages, p_other for the rest of p_ids.
    v_lines rowq_lines := rowq_lines();
    v_done  t_positions;
begin
    if p_ids is null then
        v_lines.extend(p_messages.count);
        for i in 1 .. p_messages.count loop
            v_lines(i) := rowq_line(
                i, p_messages(i).message_id, p_messages(i).lane, p_messages(i).attempt,
                p_outcome, null
            );
        end loop;
        return v_lines;
    end if;

    for i in 1 .. p_messages.count loop
        v_done(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    v_lines.extend(p_ids.count);
    for i in 1 .. p_ids.count loop
        v_lines(i) := rowq_line(
            i, p_ids(i), null, null,
            case
                when v_done.exists(internal_number_text(p_ids(i))) then p_outcome
                else p_other
            end,
            null
        );
    end loop;
    return v_lines;
end internal_outcomes;

procedure internal_pop_claimed(
    p_queue_id in number,
    p_claim_id in number,
    p_ids      in rowq_ids,
    p_claim    out nocopy t_claim,
    p_messages out nocopy t_messages
)
is
-- purpose   Take messages out of a claim: those asked for that it still holds, or all.
-- locks     the claim row, before any other row
-- errors    RQ721
    v_row_id rowid;
    v_held   t_messages;
    v_wanted t_positions;
    cursor claim_row is
        select c.rowid, c.worker_name, c.leased_at
        from rowq_claim c
        where c.queue_id = p_queue_id
          and c.claim_id = p_claim_id
        for update;
begin
    p_messages.delete;
    p_claim.claim_id := p_claim_id;
    -- Both branches wait for a session that is finishing the same claim; then the claim is
    -- unchanged, smaller or gone.
    if p_ids is null then
        delete from rowq_claim c
        where c.queue_id = p_queue_id
          and c.claim_id = p_claim_id
        returning c.worker_name, c.leased_at into p_claim.worker_name, p_claim.leased_at;
        if sql%rowcount = 0 then
            internal_refuse_claim(p_claim_id);
        end if;
        p_messages := internal_claimed_messages(p_queue_id, p_claim_id);
        delete from rowq_leased l
        where l.queue_id = p_queue_id
          and l.claim_id = p_claim_id;
        return;
    end if;

    open claim_row;
    fetch claim_row into v_row_id, p_claim.worker_name, p_claim.leased_at;
    close claim_row;
    if v_row_id is null then
        return;
    end if;

    v_held := internal_claimed_messages(p_queue_id, p_claim_id);
    for i in 1 .. p_ids.count loop
        v_wanted(internal_number_text(p_ids(i))) := i;
    end loop;
    for i in 1 .. v_held.count loop
        if v_wanted.exists(internal_number_text(v_held(i).message_id)) then
            p_messages(p_messages.count + 1) := v_held(i);
        end if;
    end loop;

    forall i in 1 .. p_messages.count
        delete from rowq_leased l
        where l.queue_id = p_queue_id
          and l.claim_id = p_claim_id
          and l.place = p_messages(i).seq;
    if p_messages.count = v_held.count then
        delete from rowq_claim c
        where c.rowid = v_row_id;
    end if;
end internal_pop_claimed;

procedure internal_refuse_claim(p_claim_id in number)
is
-- purpose   Raise the error for a claim that is gone.
-- errors    RQ721
begin
    raise_application_error(
        -20721,
        'RQ721 stale_claim: claim ' || internal_number_text(p_claim_id)
        || ' no longer holds any messages'
    );
end internal_refuse_claim;

function internal_claimed_messages(p_queue_id in number, p_claim_id in number)
return t_messages
is
-- purpose   Return the messages of a claim in delivery order.
    v_held t_messages;
begin
    select l.message_id, l.lane, l.attempt, l.place, null as group_key, 0 as is_without_slot,
           l.is_cancelled
    bulk collect into v_held
    from rowq_leased l
    where l.queue_id = p_queue_id
      and l.claim_id = p_claim_id
    order by l.queue_id, l.claim_id, l.place;
    return v_held;
end internal_claimed_messages;

procedure internal_back_off(
    p_queue         in t_queue,
    p_messages      in t_messages,
    p_delay_seconds in number,
    p_due_at        out nocopy t_timestamps
)
is
-- purpose   Return when each delayed message is due again.
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_delay number;
begin
    for i in 1 .. p_messages.count loop
        v_delay := coalesce(
            p_delay_seconds,
            least(
                p_queue.backoff_cap_seconds,
                p_queue.backoff_base_seconds
                * power(p_queue.backoff_factor, least(p_messages(i).attempt - 1, 60))
            ) * (1 - p_queue.backoff_jitter * internal_random_fraction)
        );
        p_due_at(i) := v_now + numtodsinterval(v_delay, 'second');
    end loop;
end internal_back_off;

procedure internal_set_outcomes(
    p_lines   in out nocopy rowq_lines,
    p_ids     in rowq_ids,
    p_outcome in varchar2
)
is
-- purpose   Change the outcome of these messages.
    v_places t_positions;
begin
    for i in 1 .. p_ids.count loop
        v_places(internal_number_text(p_ids(i))) := i;
    end loop;
    for i in 1 .. p_lines.count loop
        if v_places.exists(internal_number_text(p_lines(i).message_id)) then
            p_lines(i).outcome := p_outcome;
        end if;
    end loop;
end internal_set_outcomes;

procedure internal_push_dead(
    p_queue      in t_queue,
    p_messages   in t_messages,
    p_error      in clob,
    p_is_waiting in boolean
)
is
-- purpose   Make messages dead with their last error, and propagate the deaths to their successors.
-- locks     new dead rows; as internal_record_error, internal_release_links and
--           internal_propagate_deaths; result rows
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_ids        t_numbers;
    v_dedup_keys t_texts;
    v_group_keys t_texts;
    v_flags      t_numbers;
    v_awaited    rowq_ids := rowq_ids();
    v_holders    t_numbers;
    v_results    t_clobs;
begin
    if p_messages.count = 0 then
        return;
    end if;
    forall i in 1 .. p_messages.count
        insert into rowq_dead (queue_id, message_id, lane, attempt, died_at)
        values (
            p_queue.queue_id, p_messages(i).message_id, p_messages(i).lane,
            p_messages(i).attempt, v_now
        );
    internal_record_error(p_queue.queue_id, p_messages, p_error, p_is_waiting);
    if p_queue.result_seconds > 0 then
        internal_push_result(p_queue.queue_id, p_messages, 'dead', p_error, v_results);
    end if;

    internal_read_links(
        p_queue.queue_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_flags
    );
    for i in 1 .. v_ids.count loop
        if v_flags(i) = 1 then
            v_awaited.extend;
            v_awaited(v_awaited.last) := v_ids(i);
            v_flags(i) := null;
        end if;
    end loop;
    if p_queue.group_after_dead = 'hold' then
        for i in 1 .. v_ids.count loop
            if v_group_keys(i) is not null then
                v_holders(v_holders.count + 1) := v_ids(i);
                v_group_keys(i) := null;
            end if;
        end loop;
        forall i in 1 .. v_holders.count
            update rowq_dead d
            set d.holds_slot = 1
            where d.queue_id = p_queue.queue_id
              and d.message_id = v_holders(i);
    end if;
    internal_release_links(
        p_queue.queue_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_flags
    );
    if not p_is_waiting then
        -- A producer may hold its row while adding a successor: the flag does not show that yet.
        v_awaited := internal_ids_of(p_messages);
    end if;
    if v_awaited.count > 0 then
        internal_propagate_deaths(p_queue.queue_id, v_awaited);
    end if;
end internal_push_dead;

procedure internal_record_error(
    p_queue_id   in number,
    p_messages   in t_messages,
    p_error      in clob,
    p_is_waiting in boolean
)
is
-- purpose   Store the last error of messages; skip rows that a producer holds unless p_is_waiting.
-- locks     message rows; without p_is_waiting, skipping locked ones
-- differs   the last error is stored with the body, not with the state
    -- A CLOB counts an emoji as 2 characters, a varchar2 as 1. Store a CLOB, because SQL takes no
    -- varchar2 of more than 4000 bytes for many rows (ORA-01461).
    v_error  constant clob := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
    v_wanted rowq_ids := internal_ids_of(p_messages);
    v_ids    rowq_ids;
    v_held   rowq_ids;
begin
    if p_is_waiting then
        v_ids := v_wanted;
    else
        internal_lock_messages(p_queue_id, v_wanted, v_ids, v_held);
    end if;
    if p_error is not null and v_error is null then
        -- An empty text is not null, but Oracle takes '' as null: store an empty CLOB.
        forall i in 1 .. v_ids.count
            update rowq_message m
            set m.last_error = empty_clob()
            where m.queue_id = p_queue_id
              and m.message_id = v_ids(i);
        return;
    end if;
    forall i in 1 .. v_ids.count
        update rowq_message m
        set m.last_error = v_error
        where m.queue_id = p_queue_id
          and m.message_id = v_ids(i);
end internal_record_error;

function internal_retry_outcomes(
    p_ids      in rowq_ids,
    p_messages in t_messages,
    p_alive    in t_messages,
    p_due_at   in t_timestamps
)
return rowq_lines
is
-- purpose   Return the outcomes of retry_later: retrying with due_at, dead, or stale.
    v_lines rowq_lines := internal_outcomes(p_ids, p_messages, 'retrying');
    v_alive t_positions;
    v_text  varchar2(50 char);
begin
    for i in 1 .. p_alive.count loop
        v_alive(internal_number_text(p_alive(i).message_id)) := i;
    end loop;
    for i in 1 .. v_lines.count loop
        if v_lines(i).outcome = 'retrying' then
            v_text := internal_number_text(v_lines(i).message_id);
            if v_alive.exists(v_text) then
                v_lines(i).due_at := p_due_at(v_alive(v_text));
            else
                v_lines(i).outcome := 'dead';
            end if;
        end if;
    end loop;
    return v_lines;
end internal_retry_outcomes;

procedure internal_split_by_attempts(
    p_queue    in t_queue,
    p_messages in t_messages,
    p_alive    out nocopy t_messages,
    p_dead     out nocopy t_messages
)
is
-- purpose   Split messages into those with an attempt left and those without.
    v_wanted rowq_ids := internal_ids_of(p_messages);
    v_ids    t_numbers;
    v_limits t_numbers;
    v_own    t_positions;
    v_limit  number;
begin
    p_alive.delete;
    p_dead.delete;
    -- Read only the few messages that have their own limit.
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.max_attempts
    bulk collect into v_ids, v_limits
    from table(v_wanted) a
    join rowq_message m
      on m.queue_id = p_queue.queue_id
     and m.message_id = a.column_value
    where m.max_attempts is not null;
    for i in 1 .. v_ids.count loop
        v_own(internal_number_text(v_ids(i))) := v_limits(i);
    end loop;

    for i in 1 .. p_messages.count loop
        v_limit := case
            when v_own.exists(internal_number_text(p_messages(i).message_id))
                then v_own(internal_number_text(p_messages(i).message_id))
            else p_queue.max_attempts
        end;
        if p_messages(i).attempt < v_limit or v_limit = 0 then
            p_alive(p_alive.count + 1) := p_messages(i);
            -- Without a limit the attempt stops, as on the engines where it is a smallint.
            p_alive(p_alive.count).attempt := least(p_messages(i).attempt, 32766);
        else
            p_dead(p_dead.count + 1) := p_messages(i);
        end if;
    end loop;
end internal_split_by_attempts;

procedure internal_split_by_cancel(
    p_messages  in t_messages,
    p_rest      out nocopy t_messages,
    p_cancelled out nocopy t_messages
)
is
-- purpose   Split messages of a claim into cancelled ones and the rest.
begin
    p_rest.delete;
    p_cancelled.delete;
    for i in 1 .. p_messages.count loop
        if p_messages(i).is_cancelled = 1 then
            p_cancelled(p_cancelled.count + 1) := p_messages(i);
        else
            p_rest(p_rest.count + 1) := p_messages(i);
        end if;
    end loop;
end internal_split_by_cancel;

procedure internal_as_front(p_messages in out nocopy t_messages, p_spent in number)
is
-- purpose   Change messages for the front of their priority, with p_spent attempts fewer.
begin
    for i in 1 .. p_messages.count loop
        p_messages(i).lane := trunc(p_messages(i).lane / 2) * 2;
        p_messages(i).attempt := p_messages(i).attempt - p_spent;
    end loop;
end internal_as_front;

procedure internal_set_leased(p_queue_id in number, p_lines in out nocopy rowq_lines)
is
-- purpose   Set the outcome leased for messages that were not found but still have a body.
    v_asked  rowq_ids := rowq_ids();
    v_leased rowq_ids;
begin
    for i in 1 .. p_lines.count loop
        if p_lines(i).outcome = 'not_found' then
            v_asked.extend;
            v_asked(v_asked.last) := p_lines(i).message_id;
        end if;
    end loop;
    if v_asked.count = 0 then
        return;
    end if;

    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id
    bulk collect into v_leased
    from table(v_asked) a
    join rowq_message m
      on m.queue_id = p_queue_id
     and m.message_id = a.column_value
    where not exists (
        select null
        from rowq_finished f
        where f.queue_id = p_queue_id
          and f.message_id = m.message_id
    );
    internal_set_outcomes(p_lines, v_leased, 'leased');
end internal_set_leased;

function internal_waiting_of(p_queue_id in number, p_ids in rowq_ids)
return rowq_ids
is
-- purpose   Return the messages that are neither leased nor finished and waiting for the archive.
    v_ids rowq_ids;
begin
    select a.column_value
    bulk collect into v_ids
    from table(p_ids) a
    where not exists (
        select /*+ hash_aj index_rs_asc(l rowq_leased_pk) */ null
        from rowq_leased l
        where l.queue_id = p_queue_id
          and l.message_id = a.column_value
    )
      and not exists (
        select /*+ hash_aj index_rs_asc(f rowq_finished_pk) */ null
        from rowq_finished f
        where f.queue_id = p_queue_id
          and f.message_id = a.column_value
    );
    return v_ids;
end internal_waiting_of;

procedure internal_lock_dead(
    p_queue_name   in varchar2,
    p_message_ids  in clob,
    p_max_messages in number,
    p_message_type in varchar2,
    p_died_before  in timestamp,
    p_queue        out t_queue,
    p_ids          out rowq_ids,
    p_locked       out nocopy t_locked_rows
)
is
-- purpose   Check the arguments of reset and discard_dead, and lock the dead messages they select.
-- locks     dead rows, skipping locked ones
    -- No type is longer than 200 characters, and SQL takes at most 2000 bytes. Compare bytes,
    -- because text comparison depends on the session's NLS_COMP and NLS_SORT.
    v_type  constant raw(804) := utl_raw.cast_to_raw(substr(p_message_type, 1, 201));
    v_limit pls_integer;
    cursor asked_for is
        select /*+ leading(a@asked d) use_nl(d) index(d rowq_dead_pk) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.queue_id = p_queue.queue_id
          and d.message_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(p_ids) a
          )
        order by d.queue_id, d.message_id
        for update skip locked;
    cursor oldest is
        select /*+ index_rs_asc(d rowq_dead_pk) no_batch_table_access_by_rowid(d) */
               d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_dead d
        where d.queue_id = p_queue.queue_id
          and (p_died_before is null or d.died_at < p_died_before)
          and (v_type is null or v_type = (
              select /*+ index(m rowq_message_pk) */ hextoraw(rawtohex(m.message_type))
              from rowq_message m
              where m.queue_id = d.queue_id
                and m.message_id = d.message_id
          ))
        order by d.queue_id, d.message_id
        for update skip locked;
begin
    p_ids := internal_read_id_list(p_message_ids);
    internal_check_whole('max_messages', p_max_messages, 1, 10000, p_is_required => true);
    if p_message_ids is not null and (p_message_type is not null or p_died_before is not null) then
        internal_refuse('message_ids is mutually exclusive with message_type and died_before');
    end if;
    p_queue := internal_require_queue(p_queue_name);

    if p_ids is null then
        v_limit := p_max_messages;
        open oldest;
        fetch oldest bulk collect into p_locked limit v_limit;
        close oldest;
    else
        v_limit := 10000;
        open asked_for;
        fetch asked_for bulk collect into p_locked limit v_limit;
        close asked_for;
    end if;
end internal_lock_dead;

procedure internal_pop_dead(
    p_queue_id in number,
    p_ids      in rowq_ids,
    p_locked   in t_locked_rows,
    p_messages out nocopy t_messages,
    p_lines    out nocopy rowq_lines
)
is
-- purpose   Take locked dead messages out of dead, except those whose dedup key is taken.
-- locks     dead rows, held by the caller; new dedup rows, in key order
    v_found  t_messages;
    v_wanted rowq_ids;
    v_ids    t_numbers;
    v_keys   t_texts;
    v_groups t_texts;
    v_flags  t_numbers;
    v_linked t_positions;
    v_order  t_positions;
    v_taken  t_positions;
    v_at     varchar2(4000 char);
    v_text   varchar2(50 char);
    v_key    raw(800);
    v_free   t_locked_rows;
begin
    for i in 1 .. p_locked.count loop
        v_found(i).message_id := p_locked(i).message_id;
    end loop;
    v_wanted := internal_ids_of(v_found);
    internal_read_links(p_queue_id, v_found, v_ids, v_keys, v_groups, v_flags);
    for i in 1 .. v_ids.count loop
        v_linked(internal_number_text(v_ids(i))) := i;
        if v_keys(i) is not null then
            v_order(internal_dedup_order(v_keys(i), v_ids(i))) := i;
        end if;
    end loop;

    v_at := v_order.first;
    while v_at is not null loop
        v_key := utl_raw.cast_to_raw(v_keys(v_order(v_at)));
        begin
            insert into rowq_dedup (queue_id, dedup_key, message_id)
            values (p_queue_id, v_key, v_ids(v_order(v_at)));
        exception
            when dup_val_on_index then
                v_taken(internal_number_text(v_ids(v_order(v_at)))) := 1;
        end;
        v_at := v_order.next(v_at);
    end loop;

    for i in 1 .. p_locked.count loop
        if not v_taken.exists(internal_number_text(p_locked(i).message_id)) then
            v_free(v_free.count + 1) := p_locked(i);
        end if;
    end loop;
    p_messages.delete;
    internal_delete_dead(v_free, p_messages);
    if p_ids is not null then
        v_wanted := p_ids;
    end if;
    p_lines := internal_outcomes(v_wanted, p_messages, 'reset', 'not_found');
    for i in 1 .. p_lines.count loop
        if v_taken.exists(internal_number_text(p_lines(i).message_id)) then
            p_lines(i).outcome := 'duplicate';
        end if;
    end loop;
    for i in 1 .. p_messages.count loop
        p_messages(i).lane := trunc(p_messages(i).lane / 2) * 2 + 1;
        p_messages(i).attempt := 0;
        v_text := internal_number_text(p_messages(i).message_id);
        if p_messages(i).is_without_slot = 1 and v_linked.exists(v_text) then
            p_messages(i).group_key := v_groups(v_linked(v_text));
        end if;
    end loop;
end internal_pop_dead;

procedure internal_delete_dead(p_locked in t_locked_rows, p_messages in out nocopy t_messages)
is
-- purpose   Delete locked dead rows, and append their messages.
-- locks     dead rows, held by the caller
    v_next  pls_integer := p_messages.count;
    v_hit   pls_integer := 0;
    v_holds t_numbers;
begin
    forall i in 1 .. p_locked.count
        delete from rowq_dead d
        where d.rowid = p_locked(i).row_id
          and d.message_id = p_locked(i).message_id
        returning d.holds_slot bulk collect into v_holds;
    -- Take a message only if this statement deleted its row, so that no other session has it too.
    for i in 1 .. p_locked.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_next := v_next + 1;
            v_hit := v_hit + 1;
            p_messages(v_next).message_id := p_locked(i).message_id;
            p_messages(v_next).lane := p_locked(i).lane;
            p_messages(v_next).attempt := p_locked(i).attempt;
            p_messages(v_next).seq := p_locked(i).seq;
            p_messages(v_next).is_without_slot := case when v_holds(v_hit) = 1 then 0 else 1 end;
        end if;
    end loop;
end internal_delete_dead;

procedure internal_reap(
    p_queue  in t_queue,
    p_limit  in number,
    p_reaped out number,
    p_died   out number
)
is
-- purpose   Return the messages of expired claims to the front of their lanes, until p_limit is reached.
-- locks     expired claim rows and message rows, skipping locked ones; as internal_push_dead;
--           for cancelled messages as internal_finish; new history rows
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_floor constant number := internal_read_floor(p_queue.queue_id, -1 /* claim */);
    v_row_id      rowid;
    v_claim       t_claim;
    v_messages    t_messages;
    v_rest        t_messages;
    v_cancelled   t_messages;
    v_locked      rowq_ids;
    v_held        rowq_ids;
    v_ended       pls_integer := 0;
    v_alive       t_messages;
    v_dead        t_messages;
    v_error       varchar2(300 char);
    v_left        pls_integer;
    v_is_part     boolean;
    v_last_place  rowq_leased.place%type;
    -- Claims are fetched one by one, so that a claim is locked only when it is reaped.
    cursor expired is
        select /*+ index_rs_asc(c rowq_claim_pk) no_batch_table_access_by_rowid(c) */
               c.rowid, c.claim_id, c.worker_name, c.leased_at
        from rowq_claim c
        where c.queue_id = p_queue.queue_id
          and c.claim_id >= v_floor
          and c.lease_until <= v_now
        order by c.queue_id, c.claim_id
        for update skip locked;
begin
    p_reaped := 0;
    p_died := 0;
    open expired;
    while p_reaped + p_died + v_ended < p_limit loop
        fetch expired into v_row_id, v_claim.claim_id, v_claim.worker_name, v_claim.leased_at;
        exit when expired%notfound;
        v_messages := internal_claimed_messages(p_queue.queue_id, v_claim.claim_id);
        -- The messages beyond the limit stay in the claim, still expired.
        v_left := p_limit - p_reaped - p_died - v_ended;
        v_is_part := v_messages.count > v_left;
        if v_is_part then
            v_messages.delete(v_left + 1, v_messages.count);
        end if;
        internal_split_by_cancel(v_messages, v_rest, v_cancelled);
        if v_cancelled.count > 0 then
            -- Skip the claim while a producer is adding a successor to one of these.
            internal_lock_messages(
                p_queue.queue_id, internal_ids_of(v_cancelled), v_locked, v_held
            );
            continue when v_held.count > 0;
        end if;
        -- The cursor may have been open for seconds. Skip a claim whose heartbeat or finish came
        -- first: its lease is longer, or its row is locked or gone.
        if v_is_part then
            update rowq_claim c
            set c.lease_until = c.lease_until
            where c.rowid = v_row_id
              and c.claim_id = v_claim.claim_id
              and c.lease_until <= v_now;
            continue when sql%rowcount = 0;
        else
            delete from rowq_claim c
            where c.rowid = v_row_id
              and c.claim_id = v_claim.claim_id
              and c.lease_until <= v_now;
            continue when sql%rowcount = 0;
        end if;
        v_last_place := v_messages(v_messages.count).seq;
        delete from rowq_leased l
        where l.queue_id = p_queue.queue_id
          and l.claim_id = v_claim.claim_id
          and l.place <= v_last_place;

        internal_finish(p_queue, v_cancelled, 'cancelled');
        v_ended := v_ended + v_cancelled.count;
        internal_split_by_attempts(p_queue, v_rest, v_alive, v_dead);
        v_error := 'lease expired';
        if v_claim.worker_name is not null then
            v_error := v_error || ': ' || v_claim.worker_name;
        end if;
        if p_queue.history_days > 0 then
            internal_push_history(p_queue.queue_id, v_claim, v_cancelled, 'cancelled', null);
            internal_push_history(p_queue.queue_id, v_claim, v_rest, 'lease_expired', v_error);
        end if;
        internal_as_front(v_alive, 0);
        internal_push_ready(p_queue.queue_id, v_alive);
        internal_record_error(p_queue.queue_id, v_alive, v_error, false);
        internal_push_dead(p_queue, v_dead, v_error, false);
        p_reaped := p_reaped + v_alive.count;
        p_died := p_died + v_dead.count;
    end loop;
    close expired;
end internal_reap;
