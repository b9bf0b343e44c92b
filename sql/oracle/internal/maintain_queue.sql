procedure internal_maintain_queue(
    p_queue_name in varchar2,
    p_queue      in t_queue,
    p_limit      in number,
    p_until      in timestamp,
    p_kept       out nocopy rowq_kept
)
is
-- routine   internal_maintain_queue
-- purpose   Run the housekeeping of one queue in the one session that is elected for it.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P32 P36 P37
-- locks     a row of lane, passed over when locked, to the end of the transaction; as what it calls
-- differs   elected by a row and not by a named lock, as dbms_lock would need a right of its own
    v_lane        rowq_lane.lane%type;
    v_has_recheck boolean;
    v_has_started boolean;
    v_has_expiry  boolean;
    v_has_results boolean;
    v_has_history boolean;
    v_sent        pls_integer;
    v_solved      pls_integer := 0;
    -- Results leave history half of the time.
    c_results_until constant timestamp(6) := p_until - numtodsinterval(0.05, 'second');
    cursor seat is
        select l.lane
        from rowq_lane l
        where l.part_id = p_queue.part_id
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
        p_queue.part_id, v_has_recheck, v_has_started, v_has_expiry, v_has_results,
        v_has_history
    );
    if v_has_expiry then
        p_kept.expired := internal_expire(p_queue, p_limit);
    end if;
    p_kept.promoted := internal_promote(p_queue.part_id, p_limit);
    v_sent := internal_run_schedules(p_queue, p_queue_name);
    if v_has_recheck then
        v_solved := internal_recheck(p_queue.part_id, p_limit);
    end if;
    internal_reap(p_queue, p_limit, p_kept.reaped, p_kept.died);
    if p_kept.promoted + v_sent + p_kept.reaped + v_solved > 0 then
        internal_ring_doorbell(p_queue.part_id, p_queue.listened_until);
    end if;
    if v_has_started then
        internal_purge_started(p_queue, p_limit);
    end if;
    internal_maintain_archive(
        p_queue, p_limit, p_kept.archived, p_kept.purged, p_kept.partitions_dropped
    );
    if v_has_results then
        p_kept.purged := p_kept.purged
            + internal_maintain_kept(p_queue, 'results', p_limit, c_results_until);
    end if;
    if v_has_history then
        p_kept.purged := p_kept.purged
            + internal_maintain_kept(p_queue, 'history', p_limit, p_until);
    end if;
end internal_maintain_queue;
