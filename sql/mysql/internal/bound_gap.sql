drop procedure if exists rowq.internal_bound_gap;

delimiter //
create procedure rowq.internal_bound_gap(p_part_id int, inout p_claim_id bigint)
sql security definer
modifies sql data
begin
-- routine   internal_bound_gap
-- purpose   Let the caller's transaction lock a claim that may be gone without stopping new claims; p_claim_id is null afterwards if no claim has had that number yet.
-- promise   P08 P17
-- locks     a new claim row that is deleted at once
-- commits   never; moves the savepoint of internal_begin_work
-- differs   only engines that lock gaps need it
    declare v_claim_id bigint;
    -- A claim that the snapshot shows keeps its place in the index even if it is gone by now, so a
    -- lock on it covers no gap where new claims go.
    select c.claim_id into v_claim_id
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id = p_claim_id;

    if v_claim_id is null then
        -- The claim is newer than the snapshot, or gone. A lock on a key that is gone covers the
        -- gap up to the next row, which is where new claims go. A row that this transaction inserts
        -- and deletes ends the gap before them.
        set v_claim_id = uuid_short() & 9007199254740991;
        insert into rowq.claim (part_id, claim_id, lease_until, messages)
        values (p_part_id, v_claim_id, utc_timestamp(6) + interval 1 day, '[]');
        delete c
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id = v_claim_id;
        -- Move the savepoint behind the row. If a refused call removed the row, the gap would reach
        -- up to the next one.
        savepoint rowq_call;
        if p_claim_id >= v_claim_id then
            -- No claim has had this number yet, because numbers only grow. A lock on it would cover
            -- the gap where new claims go.
            set p_claim_id = null;
        end if;
    end if;
end//
delimiter ;
