procedure internal_trim_claim(p_part_id in number, p_claim_id in number)
is
-- routine   internal_trim_claim
-- version   1
-- purpose   Give back those messages of a new claim that go beyond 64 MB; the first one stays.
-- promise   P02 P05
-- locks     rows of leased, which nobody else sees yet; new ready rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    c_most constant number := 67108864;
    v_held  t_messages := internal_claimed_messages(p_part_id, p_claim_id);
    v_rest  t_messages;
    v_place number := 0;
    v_total number := 0;
begin
    for each_message in (
        select /*+ leading(l m) use_nl(m) index(m rowq_message_pk) */
               m.headers, m.body, m.body_binary
        from rowq_leased l
        join rowq_message m
          on m.part_id = l.part_id
         and m.message_id = l.message_id
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
        order by l.part_id, l.claim_id, l.place
    ) loop
        v_place := v_place + 1;
        v_total := v_total + coalesce(dbms_lob.getlength(each_message.body), 0)
            + coalesce(dbms_lob.getlength(each_message.body_binary), 0) * 4 / 3
            + coalesce(dbms_lob.getlength(each_message.headers), 0) + 1000;
        if v_total > c_most and v_place > 1 then
            v_rest(v_rest.count + 1) := v_held(v_place);
        end if;
    end loop;

    forall i in 1 .. v_rest.count
        delete from rowq_leased l
        where l.part_id = p_part_id
          and l.claim_id = p_claim_id
          and l.place = v_rest(i).seq;
    internal_as_front(v_rest, 1);
    internal_push_ready(p_part_id, v_rest);
end internal_trim_claim;
