procedure internal_maintain_queue(
    p_queue_name in varchar2,
    p_queue      in t_queue,
    p_limit      in number,
    p_kept       out nocopy rowq_kept
)
is
-- routine   internal_maintain_queue
-- version   1
-- purpose   Housekeeping of one queue by the one session that is elected for it.
-- promise   P09 P11 P13 P14 P19
-- locks     a row of lane, passed over when locked, to the end of the transaction; as what it calls
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   elected by a row and not by a named lock, as dbms_lock would need a right of its own
    v_lane rowq_lane.lane%type;
    cursor seat is
        select l.lane
        from rowq_lane l
        where l.part_id = p_queue.part_id
          and l.lane = -1
        for update skip locked;
begin
    p_kept := rowq_kept(p_queue_name, 0, 0, 0, 0, 0, 0, 0);
    open seat;
    fetch seat into v_lane;
    close seat;
    if v_lane is null then
        return;
    end if;

    p_kept.elected := 1;
    -- First the floors of what is read below, so that what was committed late is found.
    internal_rescan_floors(p_queue.part_id);
    p_kept.promoted := internal_promote(p_queue.part_id, p_limit);
    internal_reap(p_queue, p_limit, p_kept.reaped, p_kept.died);
    if p_kept.promoted + p_kept.reaped > 0 then
        internal_ring_doorbell(p_queue.part_id, p_queue.listened_until);
    end if;
    internal_maintain_archive(
        p_queue, p_limit, p_kept.archived, p_kept.purged, p_kept.partitions_dropped
    );
end internal_maintain_queue;
