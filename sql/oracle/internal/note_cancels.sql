procedure internal_note_cancels(
    p_part_id in number,
    p_ids     in rowq_ids,
    p_noted   out nocopy rowq_ids,
    p_rest    out nocopy rowq_ids
)
is
-- routine   internal_note_cancels
-- purpose   Note for those of these messages that claims hold that they were cancelled (p_noted); p_rest are the others.
-- promise   P34
-- locks     claim rows, passing over locked ones; then leased rows
    c_most constant pls_integer := 10000;
    v_claim_ids t_numbers;
    v_places    t_numbers;
    v_held_ids  t_numbers;
    v_claims    rowq_ids := rowq_ids();
    v_row_ids   t_row_ids;
    v_locked    t_numbers;
    v_known     t_places;
    v_of        t_numbers;
    v_at        t_numbers;
    v_ids       t_numbers;
    v_next      pls_integer := 0;
    cursor claim_rows is
        select /*+ leading(a@asked c) use_nl(c) index(c rowq_claim_pk) */ c.rowid, c.claim_id
        from rowq_claim c
        where c.part_id = p_part_id
          and c.claim_id in (
              select /*+ qb_name(asked) unnest cardinality(a 10) */ a.column_value
              from table(v_claims) a
          )
        for update skip locked;
begin
    p_noted := rowq_ids();
    p_rest := p_ids;
    -- Find the claims without locks, so that none is locked that holds none of the messages. Begin
    -- before the floor, because a claim that was committed late may hold one of them.
    select /*+ leading(l a@asked) use_hash(a@asked) index_rs_asc(l rowq_leased_pk) */
           l.claim_id, l.place, l.message_id
    bulk collect into v_claim_ids, v_places, v_held_ids
    from rowq_leased l
    where l.part_id = p_part_id
      and l.message_id in (
          select /*+ qb_name(asked) unnest */ a.column_value
          from table(p_ids) a
      );
    for i in 1 .. v_claim_ids.count loop
        if not v_known.exists(internal_number_text(v_claim_ids(i))) then
            v_known(internal_number_text(v_claim_ids(i))) := i;
            v_claims.extend;
            v_claims(v_claims.last) := v_claim_ids(i);
        end if;
    end loop;
    if v_claims.count = 0 then
        return;
    end if;

    open claim_rows;
    fetch claim_rows bulk collect into v_row_ids, v_locked limit c_most;
    close claim_rows;
    v_known.delete;
    for i in 1 .. v_locked.count loop
        v_known(internal_number_text(v_locked(i))) := i;
    end loop;
    for i in 1 .. v_claim_ids.count loop
        if v_known.exists(internal_number_text(v_claim_ids(i))) then
            v_next := v_next + 1;
            v_of(v_next) := v_claim_ids(i);
            v_at(v_next) := v_places(i);
            v_ids(v_next) := v_held_ids(i);
        end if;
    end loop;

    forall i in 1 .. v_row_ids.count
        update rowq_claim c
        set c.has_cancels = 1
        where c.rowid = v_row_ids(i);
    forall i in 1 .. v_ids.count
        update rowq_leased l
        set l.is_cancelled = 1
        where l.part_id = p_part_id
          and l.claim_id = v_of(i)
          and l.place = v_at(i)
          and l.message_id = v_ids(i);
    -- A message that was finished before its claim was locked is not there any more.
    v_known.delete;
    for i in 1 .. v_ids.count loop
        if sql%bulk_rowcount(i) = 1 then
            v_known(internal_number_text(v_ids(i))) := i;
            p_noted.extend;
            p_noted(p_noted.last) := v_ids(i);
        end if;
    end loop;
    p_rest := rowq_ids();
    for i in 1 .. p_ids.count loop
        if not v_known.exists(internal_number_text(p_ids(i))) then
            p_rest.extend;
            p_rest(p_rest.last) := p_ids(i);
        end if;
    end loop;
end internal_note_cancels;
