-- Maintain: floors, expiry, promote, reap, schedules, archive, purges.
--
-- Any session may call maintain at any time. One of the callers is elected for each queue, by a row
-- lock that is tried and never waited for, so many callers cost as much as one. An idle queue costs
-- some 16 small statements. What deliveries wait for comes first; purges get what is left of a
-- tenth of a second. If one queue fails, the error is kept in meta for health, the others go on,
-- and a call for that queue alone raises it.
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
-- purpose   Run the housekeeping of one queue in the one session that is elected for it.
-- locks     a row of lane, passed over when locked, to the end of the transaction; as what it calls
-- differs   elected by a row and not by a named lock, as dbms_lock would need a right of its own
    v_lane         rowq_lane.lane%type;
    v_has_deferred boolean;
    v_has_started  boolean;
    v_has_expiry   boolean;
    v_has_results  boolean;
    v_has_history  boolean;
    v_sent         pls_integer;
    v_solved       pls_integer := 0;
    -- Results leave history half of the time.
    c_results_until constant timestamp(6) := p_until - numtodsinterval(0.05, 'second');
    cursor seat is
        select l.lane
        from rowq_lane l
        where l.queue_id = p_queue.queue_id
          and l.lane = -1 /* claim */
        for update skip locked;
begin
    p_kept := rowq_kept(p_queue_name, 0, 0, 0, 0, 0, 0, 0, 0);
    open seat;
    fetch seat into v_lane;
    close seat;
    if v_lane is null then
        return;
    end if;

    p_kept.elected := 1;
    -- Put the floors right first, so that the steps below find what was committed late.
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
-- purpose   Purge 'results' or 'history' in maintain, a queue's first p_limit old rows, and till p_until up to ten times as many; an error in it is noted, not raised.
-- locks     as internal_purge_results or internal_purge_history; with a fault a row of meta
-- differs   a fault is noted in meta, where health reads it: this engine's calls have no warnings
    -- ORA-01013: the user has cancelled the call.
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
        -- An error is only noted, because housekeeping must go on. The archive has noted its own
        -- state before, and does so again before the next one of these.
        v_error := substr(p_what || ': ' || sqlerrm, 1, 500);
        rollback to savepoint rowq_kept_part;
        internal_record_maintain_error(p_queue.queue_id, v_error);
        return 0;
end internal_maintain_retention;

procedure internal_record_maintain_error(p_queue_id in number, p_error in varchar2)
is
-- purpose   Remember the last error in maintain of a queue, for health; null forgets it.
-- locks     a row of meta
-- differs   no such helper elsewhere: other engines warn
    v_name constant rowq_meta.name%type := 'maintain_fault.' || internal_number_text(p_queue_id);
begin
    if p_error is null then
        delete from rowq_meta m
        where m.name = v_name;
        return;
    end if;
    internal_record_value(v_name, p_error);
end internal_record_maintain_error;
