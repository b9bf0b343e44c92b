procedure internal_note_expiry(
    p_part_id  in number,
    p_messages in t_messages,
    p_seqs     in t_numbers
)
is
-- routine   internal_note_expiry
-- purpose   Let maintain look again for those of the messages that expire. p_seqs are their places in ready, and empty where they wait elsewhere.
-- promise   P36
-- locks     new expiry rows
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_wanted  rowq_ids := internal_ids_of(p_messages);
    v_ids     t_numbers;
    v_moments t_moments;
    v_places  t_places;
    v_place   pls_integer;
    v_lanes   t_numbers;
    v_seqs    t_numbers;
begin
    if p_messages.count = 0 then
        return;
    end if;
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */
           m.message_id,
           least(greatest(m.expires_at, v_now), v_now + numtodsinterval(1, 'day')) as expires_at
    bulk collect into v_ids, v_moments
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_part_id
     and m.message_id = a.column_value
    where m.expires_at is not null;
    if v_ids.count = 0 then
        return;
    end if;

    for i in 1 .. p_messages.count loop
        v_places(internal_number_text(p_messages(i).message_id)) := i;
    end loop;
    for i in 1 .. v_ids.count loop
        v_lanes(i) := null;
        v_seqs(i) := null;
        if p_seqs.count > 0 then
            v_place := v_places(internal_number_text(v_ids(i)));
            v_lanes(i) := p_messages(v_place).lane;
            v_seqs(i) := p_seqs(v_place);
        end if;
    end loop;
    forall i in 1 .. v_ids.count
        insert into rowq_expiry (part_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            p_part_id, v_moments(i), rowq_claim_seq.nextval, v_ids(i), v_lanes(i), v_seqs(i)
        );
end internal_note_expiry;
