drop procedure if exists rowq.internal_bound_gap;

delimiter //
create procedure rowq.internal_bound_gap(p_part_id int, inout p_claim_id bigint)
sql security definer
modifies sql data
begin
-- routine   internal_bound_gap
-- version   1
-- purpose   Let the caller's transaction lock a claim that may be gone without stopping new claims; p_claim_id is null afterwards if no claim has had that number yet.
-- promise   P08 P17
-- locks     a new claim row that is deleted at once
-- commits   never; moves the savepoint of internal_begin_work
-- errors    none
-- differs   only engines that lock gaps need it
    declare v_claim_id bigint;
    -- A claim that the snapshot shows keeps its place in the index, even if it is gone by now.
    select c.claim_id into v_claim_id
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id = p_claim_id;

    if v_claim_id is null then
        -- Above repeatable read's snapshot or gone: then its gap is locked up to the next row, and
        -- reaches to where new claims go. A deleted row of this transaction ends it before them.
        insert into rowq.claim (part_id, lease_until, messages)
        values (p_part_id, utc_timestamp(6) + interval 1 day, '[]');
        set v_claim_id = last_insert_id();
        delete c
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id = v_claim_id;
        -- Undone with a refused call, the row would leave its part of the gap to the next one.
        savepoint rowq_call;
        if p_claim_id >= v_claim_id then
            -- Numbers only grow. A lock on one that is to come would reach to where new claims go.
            set p_claim_id = null;
        end if;
    end if;
end//
delimiter ;
