-- Archive: finished messages, by day.
--
-- A finished message of a queue with archive_days waits in finished until maintain moves it to
-- archive with its body. Messages locked by another transaction are skipped. If
-- partition_archive.sql was run, a day is a partition: the server adds days, and maintain drops
-- those that no queue needs. A queue's old rows in other days are deleted by key. An error never
-- fails maintain: it is recorded for health, and the next call retries.
--
-- DDL commits, so partitions are dropped in an autonomous transaction.
--
--   maintain_queue -> maintain_archive -> drop_days, archive, purge_archive
--
-- Writes archive, finished, message. Only reads meta, queue.

procedure internal_maintain_archive(
    p_queue    in t_queue,
    p_limit    in number,
    p_archived out number,
    p_purged   out number,
    p_dropped  out number
)
is
-- purpose   Archive, purge and drop days in maintain; record an error for health.
-- locks     as archive and purge_archive; after an error a row of meta
-- commits   as internal_drop_days; never the caller's transaction
-- differs   an error is recorded in meta, which health reads: calls have no warnings here
    -- ORA-01013: the user cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    v_today constant timestamp(6) := cast(
        trunc(sys_extract_utc(systimestamp), 'dd') as timestamp
    );
    v_error       rowq_meta.value%type;
    v_archived_id rowq_archive.message_id%type;
    cursor kept is
        select a.message_id
        from rowq_archive a
        where a.queue_id = p_queue.queue_id;
begin
    p_archived := 0;
    p_purged := 0;
    p_dropped := 0;
    savepoint rowq_archive_part;
    if p_queue.archive_days = 0 then
        -- The queue may have rows from when it had an archive.
        open kept;
        fetch kept into v_archived_id;
        close kept;
        if v_archived_id is null
           and internal_first_key(p_queue.queue_id, -3 /* finished */, 0) is null
        then
            internal_record_maintain_error(p_queue.queue_id, null);
            return;
        end if;
    end if;

    -- Drop partitions before this transaction locks the archive.
    p_dropped := internal_drop_days(false);
    p_archived := internal_archive(p_queue.queue_id, p_limit);
    -- Purge whole days: dropping a partition costs less than deleting its rows. A queue without
    -- archive_days is purged up to now.
    p_purged := internal_purge_archive(
        p_queue.queue_id,
        case
            when p_queue.archive_days > 0
                then v_today - numtodsinterval(p_queue.archive_days, 'day')
            else sys_extract_utc(systimestamp)
        end,
        p_limit
    );
    internal_record_maintain_error(p_queue.queue_id, null);
exception
    when e_cancelled then
        raise;
    when others then
        -- An error in the archive, such as a full disk, is only recorded: promote and reap must
        -- commit.
        v_error := substr(sqlerrm, 1, 500);
        rollback to savepoint rowq_archive_part;
        p_archived := 0;
        p_purged := 0;
        internal_record_maintain_error(p_queue.queue_id, v_error);
end internal_maintain_archive;

function internal_drop_days(p_is_asked in boolean)
return number
is
-- purpose   Drop the partitions of the archive that no queue needs.
-- locks     the archive's partition, tried; a row of meta
-- commits   an autonomous transaction, as DDL commits; never the caller's
-- differs   PostgreSQL drops them in the caller's transaction
--
-- Returns how many. Unless p_is_asked, it reads the catalog only once per day.
    pragma autonomous_transaction;
    -- Another session or the caller uses the partition: retry later.
    e_busy exception;
    e_deadlock exception;
    pragma exception_init(e_busy, -54);
    pragma exception_init(e_deadlock, -60);
    v_keep_from timestamp(6);
    v_bound     varchar2(4000 char);
    v_ends_at   timestamp(6);
    v_dropped   pls_integer := 0;
    v_is_busy   boolean := false;
    c_done      constant rowq_meta.name%type := 'archive_dropped_before';
    v_done      rowq_meta.value%type;
    v_day       rowq_meta.value%type;
begin
    select cast(trunc(sys_extract_utc(systimestamp), 'dd') as timestamp)
           - numtodsinterval(max(q.archive_days), 'day')
    into v_keep_from
    from rowq_queue q;
    -- The catalog is slow to read, and maintain calls this every second for each queue.
    v_day := to_char(v_keep_from, 'yyyy-mm-dd', 'nls_calendar=gregorian');
    select max(m.value) into v_done
    from rowq_meta m
    where m.name = c_done;
    if v_done = v_day and not p_is_asked then
        commit;
        return 0;
    end if;

    for each_day in (
        select p.partition_name, p.high_value
        from user_tab_partitions p
        where p.table_name = 'ROWQ_ARCHIVE'
          and p.interval = 'YES'
        order by p.partition_position
    ) loop
        -- high_value is a LONG, such as TIMESTAMP' 2026-11-22 00:00:00'.
        v_bound := each_day.high_value;
        v_ends_at := to_timestamp(
            regexp_substr(v_bound, '[0-9]{4}-[0-9]{2}-[0-9]{2}'), 'yyyy-mm-dd',
            'nls_calendar=gregorian'
        );
        exit when v_ends_at > v_keep_from or v_keep_from is null;
        begin
            execute immediate 'alter table rowq_archive drop partition '
                || dbms_assert.enquote_name(each_day.partition_name) || ' update indexes';
            v_dropped := v_dropped + 1;
        exception
            when e_busy or e_deadlock then
                v_is_busy := true;
                exit;
        end;
    end loop;
    if v_day is not null and not v_is_busy then
        internal_record_value(c_done, v_day);
    end if;
    commit;
    return v_dropped;
end internal_drop_days;

function internal_archive(p_queue_id in number, p_limit in number)
return number
is
-- purpose   Move up to p_limit finished messages to the archive, oldest first.
-- locks     finished and message rows, skipping locked ones; new archive rows; as
--           internal_resume_successors
    type t_finished is record (
        finish_id   rowq_finished.finish_id%type,
        message_id  rowq_finished.message_id%type,
        lane        rowq_finished.lane%type,
        attempt     rowq_finished.attempt%type,
        state       rowq_finished.state%type,
        finished_at rowq_finished.finished_at%type
    );
    type t_finished_list is table of t_finished index by pls_integer;
    v_floor   rowq_lane.floor_seq%type := internal_read_floor(p_queue_id, -3 /* finished */);
    v_found   t_finished_list;
    v_free    t_finished_list;
    v_ids     rowq_ids := rowq_ids();
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_places  t_positions;
    v_awaited rowq_ids;
    cursor finished_rows is
        select /*+ index_rs_asc(f rowq_finished_pk) no_batch_table_access_by_rowid(f) */
               f.finish_id, f.message_id, f.lane, f.attempt, f.state, f.finished_at
        from rowq_finished f
        where f.queue_id = p_queue_id
          and f.finish_id >= v_floor
        order by f.queue_id, f.finish_id, f.message_id
        for update skip locked;
begin
    open finished_rows;
    fetch finished_rows bulk collect into v_found limit p_limit;
    close finished_rows;
    if v_found.count = 0 then
        return 0;
    end if;

    -- Skip a message while a producer adds a successor of it.
    v_ids.extend(v_found.count);
    for i in 1 .. v_found.count loop
        v_ids(i) := v_found(i).message_id;
    end loop;
    internal_lock_messages(p_queue_id, v_ids, v_locked, v_held);
    v_awaited := internal_find_awaited(p_queue_id, v_locked);
    for i in 1 .. v_held.count loop
        v_places(internal_number_text(v_held(i))) := i;
    end loop;
    for i in 1 .. v_found.count loop
        if not v_places.exists(internal_number_text(v_found(i).message_id)) then
            v_free(v_free.count + 1) := v_found(i);
        end if;
    end loop;

    forall i in 1 .. v_free.count
        insert into rowq_archive (
            queue_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
            dedup_key, group_key, producer_name, headers, body, body_binary
        )
        select m.queue_id, v_free(i).finished_at, m.message_id, v_free(i).lane,
               v_free(i).attempt, m.enqueued_at, v_free(i).state, m.message_type,
               m.dedup_key, m.group_key, m.producer_name, m.headers, m.body, m.body_binary
        from rowq_message m
        where m.queue_id = p_queue_id
          and m.message_id = v_free(i).message_id;
    forall i in 1 .. v_free.count
        delete from rowq_message m
        where m.queue_id = p_queue_id
          and m.message_id = v_free(i).message_id;
    forall i in 1 .. v_free.count
        delete from rowq_finished f
        where f.queue_id = p_queue_id
          and f.finish_id = v_free(i).finish_id
          and f.message_id = v_free(i).message_id;
    -- When the message ended, an uncommitted successor was not visible.
    for i in 1 .. v_awaited.count loop
        internal_resume_successors(p_queue_id, v_awaited(i));
    end loop;
    return v_free.count;
end internal_archive;

function internal_purge_archive(
    p_queue_id in number,
    p_before   in timestamp,
    p_limit    in number
)
return number
is
-- purpose   Delete a queue's archived messages that finished before p_before.
-- locks     archive rows, skipping locked ones
    v_row_ids t_row_ids;
    v_purged  pls_integer := 0;
    cursor old_rows is
        select /*+ index_rs_asc(a rowq_archive_pk) no_batch_table_access_by_rowid(a) */ a.rowid
        from rowq_archive a
        where a.queue_id = p_queue_id
          and a.finished_at < p_before
        order by a.queue_id, a.finished_at, a.message_id
        for update skip locked;
begin
    open old_rows;
    fetch old_rows bulk collect into v_row_ids limit p_limit;
    close old_rows;
    -- Repeat the cursor's condition: the row may have changed since the cursor was opened.
    forall i in 1 .. v_row_ids.count
        delete from rowq_archive a
        where a.rowid = v_row_ids(i)
          and a.queue_id = p_queue_id
          and a.finished_at < p_before;
    for i in 1 .. v_row_ids.count loop
        v_purged := v_purged + sql%bulk_rowcount(i);
    end loop;
    return v_purged;
end internal_purge_archive;
