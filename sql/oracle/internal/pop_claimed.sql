function internal_pop_claimed(p_part_id in number, p_claim_id in number, p_ids in rowq_ids)
return t_messages
is
-- routine   internal_pop_claimed
-- version   1
-- purpose   Take messages out of a claim: those asked for that it still holds, or all of them.
-- promise   P08
-- locks     the claim row, first of all
-- commits   never; the caller owns the transaction
-- errors    RQ721
-- differs   nothing
    v_row_id rowid;
    v_held   t_messages;
    v_taken  t_messages;
    v_wanted t_places;
    cursor claim_row is
        select c.rowid
        from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id
        for update;
begin
    -- Waits for who is finishing the same claim; then it is there, smaller, or gone.
    open claim_row;
    fetch claim_row into v_row_id;
    close claim_row;
    if v_row_id is null then
        if p_ids is null then
            internal_refuse_claim(p_claim_id);
        end if;
        return v_taken;
    end if;

    v_held := internal_claimed_messages(p_part_id, p_claim_id);
    if p_ids is null then
        v_taken := v_held;
    else
        for i in 1 .. p_ids.count loop
            v_wanted(internal_number_text(p_ids(i))) := i;
        end loop;
        for i in 1 .. v_held.count loop
            if v_wanted.exists(internal_number_text(v_held(i).message_id)) then
                v_taken(v_taken.count + 1) := v_held(i);
            end if;
        end loop;
    end if;

    forall i in 1 .. v_taken.count
        delete from rowq_leased l
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
          and l.place = v_taken(i).seq;
    if v_taken.count = v_held.count then
        delete from rowq_claim c
        where c.rowid = v_row_id;
    end if;
    return v_taken;
end internal_pop_claimed;
