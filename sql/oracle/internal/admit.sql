function internal_admit(p_part_id in number, p_wanted in number)
return number
is
-- routine   internal_admit
-- purpose   Return how many messages a dequeue may lease under its queue's limits; from then on it is alone until its transaction ends.
-- promise   P28 P29
-- locks     the gate of the queue
-- errors    RQ713
-- differs   a serializable transaction is refused only where others have leased since it began:
--           nothing tells its level
begin
    -- Look first, because a poll of a queue without room shall neither wait nor write.
    if internal_room(p_part_id, p_wanted) = 0 then
        return 0;
    end if;
    if not internal_lock_gate(p_part_id) then
        return 0;
    end if;
    -- Look again, in a statement of its own: it is younger than the lock, so it sees what the
    -- session leased that held the gate before, and settings that were changed meanwhile.
    return internal_room(p_part_id, p_wanted);
end internal_admit;
