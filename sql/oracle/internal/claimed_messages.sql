function internal_claimed_messages(p_part_id in number, p_claim_id in number)
return t_messages
is
-- routine   internal_claimed_messages
-- purpose   Return the messages that a claim holds, in the order in which they were given out.
-- promise   P08
-- differs   no such helper elsewhere: other engines read them from the claim
    v_held t_messages;
begin
    select l.message_id, l.lane, l.attempt, l.place, null as group_key, 0 as is_tokenless,
           l.is_cancelled
    bulk collect into v_held
    from rowq_leased l
    where l.part_id = p_part_id
      and l.claim_id = p_claim_id
    order by l.part_id, l.claim_id, l.place;
    return v_held;
end internal_claimed_messages;
