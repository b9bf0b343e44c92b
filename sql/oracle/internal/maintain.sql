-- Maintain: floors, expiry, promote, reap, schedules, archive, purges.
--
-- Any session may call maintain at any time. For each queue one caller is elected by a row lock
-- that is tried, never waited for: many callers cost no more than one. An idle queue costs about 16
-- small statements. Delivery comes first; purges get the rest of 100 ms. If a queue fails, its
-- error is kept in meta for health and the other queues are maintained; a call for that queue alone
-- raises the error.
--
--   maintain -> maintain_queue -> maintain_retention
--   maintain_retention -> record_maintain_error
--   maintain, remove_queue, maintain_archive -> record_maintain_error
--
-- Writes meta. Only reads lane.

procedure internal_maintain_queue(
    p_queue_name in varchar2,
    p_queue      in t_queue,
    p_limit      in number,
    p_until      in timestamp,
    p_kept       out nocopy rowq_kept
)
is
-- purpose   Maintain one queue in the session that is elected for it.
-- locks     a row of lane, skipped if locked, until the transaction ends; as the helpers it calls
-- differs   elected by a row: a named lock requires a right on dbms_lock
    v_lane         rowq_lane.lane%type;
    v_has_deferred boolean;
    v_has_started  boolean;
    v_has_expiry   boolean;
    v_has_results  boolean;
    v_has_history  boolean;
    v_sent         pls_integer;
    v_solved       pls_integer := 0;
    -- Results use half of the time, history the rest.
    c_results_until constant timestamp(6) := p_until - numtodsinterval(0.05, 'second');
    cursor election is
        select l.lane
        from rowq_lane l
        where l.queue_id = p_queue.queue_id
          and l.lane = -1 /* claim */
        for update skip locked;
begin
    p_kept := rowq_kept(p_queue_name, 0, 0, 0, 0, 0, 0, 0, 0);
    open election;
    fetch election into v_lane;
    close election;
    if v_lane is null then
        return;
    end if;

    p_kept.elected := 1;
    -- Move the floors first, so that the steps below find late rows.
    internal_rescan_floors(
        p_queue.queue_id, v_has_deferred, v_has_started, v_has_expiry, v_has_results,
        v_has_history
    );
    if v_has_expiry then
        p_kept.expired := internal_expire(p_queue, p_limit);
    end if;
    p_kept.promoted := internal_promote(p_queue.queue_id, p_limit);
    v_sent := internal_run_schedules(p_queue, p_queue_name);
    if v_has_deferred then
        v_solved := internal_run_deferred(p_queue.queue_id, p_limit);
    end if;
    internal_reap(p_queue, p_limit, p_kept.reaped, p_kept.died);
    if p_kept.promoted + v_sent + p_kept.reaped + v_solved > 0 then
        internal_wake_waiters(p_queue.queue_id, p_queue.waiting_until);
    end if;
    if v_has_started then
        internal_purge_started(p_queue, p_limit);
    end if;
    internal_maintain_archive(
        p_queue, p_limit, p_kept.archived, p_kept.purged, p_kept.partitions_dropped
    );
    if v_has_results then
        p_kept.purged := p_kept.purged
            + internal_maintain_retention(p_queue, 'results', p_limit, c_results_until);
    end if;
    if v_has_history then
        p_kept.purged := p_kept.purged
            + internal_maintain_retention(p_queue, 'history', p_limit, p_until);
    end if;
end internal_maintain_queue;

function internal_maintain_retention(
    p_queue in t_queue,
    p_what  in varchar2,
    p_limit in number,
    p_until in timestamp
)
return number
is
-- purpose   Purge old results or history; record an error for health.
-- locks     as internal_purge_results or internal_purge_history; after an error a row of meta
-- differs   an error is recorded in meta, which health reads: calls have no warnings here
--
-- p_what is 'results' or 'history'. Up to p_limit rows; until p_until, up to ten times as many.
    -- ORA-01013: the user cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    c_most_batches constant pls_integer := 10;
    v_error  rowq_meta.value%type;
    v_batch  number;
    v_purged number := 0;
begin
    savepoint rowq_kept_part;
    for i in 1 .. c_most_batches loop
        if p_what = 'results' then
            v_batch := internal_purge_results(p_queue, p_limit);
        else
            v_batch := internal_purge_history(p_queue, p_limit);
        end if;
        v_purged := v_purged + v_batch;
        exit when v_batch < p_limit or sys_extract_utc(systimestamp) > p_until;
    end loop;
    return v_purged;
exception
    when e_cancelled then
        raise;
    when others then
        -- Only record the error: maintain must continue. The archive has recorded its own state
        -- before, and does so again before the next error.
        v_error := substr(p_what || ': ' || sqlerrm, 1, 500);
        rollback to savepoint rowq_kept_part;
        internal_record_maintain_error(p_queue.queue_id, v_error);
        return 0;
end internal_maintain_retention;

procedure internal_record_maintain_error(p_queue_id in number, p_error in varchar2)
is
-- purpose   Record the error of maintain for a queue, for health; null deletes it.
-- locks     a row of meta
    v_name constant rowq_meta.name%type := 'maintain_fault.' || internal_number_text(p_queue_id);
begin
    if p_error is null then
        delete from rowq_meta m
        where m.name = v_name;
        return;
    end if;
    internal_record_value(v_name, p_error);
end internal_record_maintain_error;
