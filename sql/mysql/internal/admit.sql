drop procedure if exists rowq.internal_admit;

delimiter //
create procedure rowq.internal_admit(
    p_part_id int,
    p_wanted int,
    p_max_leased int,
    inout p_rate_limit int,
    p_rate_seconds double,
    p_owns_transaction boolean,
    out p_room int,
    out p_last_claim_id bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_admit
-- purpose   Return how many messages a dequeue may lease under its queue's limits, the rate_limit by then, and the last claim before it; from then on it is alone until its transaction ends.
-- promise   P28 P29
-- locks     the gate of the queue
-- errors    RQ713
-- differs   elsewhere the level of the transaction can be read, and not only that of the session
    declare v_is_old boolean default
        not p_owns_transaction
        and /*!80000 @@session.transaction_isolation */ /*M!100600 @@session.tx_isolation */
            <> 'READ-COMMITTED';
    declare v_is_paused boolean;
    set p_room = 0, p_last_claim_id = null;

    -- An older snapshot does not show what others have leased since, and READ UNCOMMITTED takes
    -- for gone what may be rolled back. The level of one transaction stands in no variable, so the
    -- session's counts.
    if not v_is_old then
        -- Look first, because a poll of a queue without room shall neither wait nor write.
        call rowq.internal_room(
            p_part_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds, p_room
        );
        if p_room > 0 then
            call rowq.internal_lock_gate(p_part_id, p_last_claim_id);
        end if;
    end if;

    if p_last_claim_id is not null and not p_owns_transaction then
        -- REPEATABLE READ may have been chosen for this transaction only. A snapshot that shows the
        -- last one to have held the gate shows all before it, too.
        select not g.last_claim_id <=> p_last_claim_id into v_is_old
        from rowq.gate g
        where g.part_id = p_part_id;
    end if;
    if v_is_old then
        signal sqlstate '45713'
            set message_text =
                'RQ713 wrong_transaction_state: limits ask for read committed in the session';
    end if;

    if p_last_claim_id is null then
        set p_room = 0;
    else
        -- Look again, in statements of their own: their snapshots are newer than the lock, so they
        -- see what the session leased that held the gate before, and settings that were changed
        -- meanwhile.
        select q.paused_at is not null, q.max_leased, q.rate_limit, q.rate_seconds
        into v_is_paused, p_max_leased, p_rate_limit, p_rate_seconds
        from rowq.queue q
        where q.part_id = p_part_id;
        if v_is_paused then
            set p_room = 0;
        else
            call rowq.internal_room(
                p_part_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds, p_room
            );
        end if;
    end if;
end//
delimiter ;
