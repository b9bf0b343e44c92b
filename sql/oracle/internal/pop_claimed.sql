procedure internal_pop_claimed(
    p_part_id  in number,
    p_claim_id in number,
    p_ids      in rowq_ids,
    p_claim    out nocopy t_claim,
    p_messages out nocopy t_messages
)
is
-- routine   internal_pop_claimed
-- purpose   Take messages out of a claim: those asked for that it still holds, or all of them. p_claim says who had them.
-- promise   P08
-- locks     the claim row, first of all
-- errors    RQ721
    v_row_id rowid;
    v_held   t_messages;
    v_wanted t_places;
    cursor claim_row is
        select c.rowid, c.worker_name, c.leased_at
        from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id
        for update;
begin
    p_messages.delete;
    p_claim.claim_id := p_claim_id;
    -- Both ways wait for a session that is finishing the same claim; afterwards the claim is as it
    -- was, smaller, or gone.
    if p_ids is null then
        delete from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id
        returning c.worker_name, c.leased_at into p_claim.worker_name, p_claim.leased_at;
        if sql%rowcount = 0 then
            internal_refuse_claim(p_claim_id);
        end if;
        p_messages := internal_claimed_messages(p_part_id, p_claim_id);
        delete from rowq_leased l
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id;
        return;
    end if;

    open claim_row;
    fetch claim_row into v_row_id, p_claim.worker_name, p_claim.leased_at;
    close claim_row;
    if v_row_id is null then
        return;
    end if;

    v_held := internal_claimed_messages(p_part_id, p_claim_id);
    for i in 1 .. p_ids.count loop
        v_wanted(internal_number_text(p_ids(i))) := i;
    end loop;
    for i in 1 .. v_held.count loop
        if v_wanted.exists(internal_number_text(v_held(i).message_id)) then
            p_messages(p_messages.count + 1) := v_held(i);
        end if;
    end loop;

    forall i in 1 .. p_messages.count
        delete from rowq_leased l
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
          and l.place = p_messages(i).seq;
    if p_messages.count = v_held.count then
        delete from rowq_claim c
        where c.rowid = v_row_id;
    end if;
end internal_pop_claimed;
