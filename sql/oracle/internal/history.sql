-- History: attempts that have ended.
--
-- If a queue has history_days, each call that ends attempts adds a row per attempt to history in
-- the same transaction, one insert per outcome. maintain and purge_archive delete by key in the
-- order of ended_at, from a floor. There are no partitions: dropping one would lock the table that
-- every finishing call inserts into.
--
--   complete_claim, retry_later, fail_now, ... -> push_history
--   purge_archive, maintain_retention -> purge_history
--
-- Writes history.

procedure internal_push_history(
    p_queue_id in number,
    p_claim    in t_claim,
    p_messages in t_messages,
    p_outcome  in varchar2,
    p_error    in clob
)
is
-- purpose   Record ended attempts of a claim with one outcome.
-- locks     new history rows
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    -- A CLOB: SQL takes no varchar2 of more than 4000 bytes for many rows (ORA-01461).
    v_error clob := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
begin
    if p_error is not null and v_error is null then
        v_error := empty_clob();
    end if;
    forall i in 1 .. p_messages.count
        insert into rowq_history (
            queue_id, ended_at, message_id, claim_id, attempt, leased_at, outcome, worker_name,
            error
        )
        values (
            p_queue_id, v_now, p_messages(i).message_id, p_claim.claim_id, p_messages(i).attempt,
            p_claim.leased_at, p_outcome, p_claim.worker_name, v_error
        );
end internal_push_history;

function internal_purge_history(p_queue in t_queue, p_limit in number)
return number
is
-- purpose   Delete up to p_limit expired attempts; return how many.
-- locks     history rows, skipping locked ones
    v_before  constant timestamp(6) :=
        sys_extract_utc(systimestamp) - numtodsinterval(p_queue.history_days, 'day');
    v_since   constant timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.queue_id, -8 /* history */));
    v_probe   rowq_history.ended_at%type;
    v_row_ids t_row_ids;
    v_purged  number := 0;
    cursor old is
        select /*+ index_rs_asc(h rowq_history_pk) */ h.ended_at
        from rowq_history h
        where h.queue_id = p_queue.queue_id
          and h.ended_at >= v_since
          and h.ended_at < v_before
        order by h.queue_id, h.ended_at, h.message_id, h.claim_id;
    cursor old_rows is
        select /*+ index_rs_asc(h rowq_history_pk) no_batch_table_access_by_rowid(h) */ h.rowid
        from rowq_history h
        where h.queue_id = p_queue.queue_id
          and h.ended_at >= v_since
          and h.ended_at < v_before
        order by h.queue_id, h.ended_at, h.message_id, h.claim_id
        for update skip locked;
begin
    -- Read without a lock first, so that an empty call begins no transaction.
    open old;
    fetch old into v_probe;
    close old;
    if v_probe is null then
        return 0;
    end if;

    open old_rows;
    fetch old_rows bulk collect into v_row_ids limit p_limit;
    close old_rows;
    -- Repeat the cursor's condition: the row may have changed since the cursor was opened.
    forall i in 1 .. v_row_ids.count
        delete from rowq_history h
        where h.rowid = v_row_ids(i)
          and h.queue_id = p_queue.queue_id
          and h.ended_at < v_before;
    for i in 1 .. v_row_ids.count loop
        v_purged := v_purged + sql%bulk_rowcount(i);
    end loop;
    return v_purged;
end internal_purge_history;
