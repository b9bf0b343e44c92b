create or replace function rowq.internal_admit(
    p_part_id      integer,
    p_wanted       integer,
    p_max_leased   integer,
    p_rate_limit   integer,
    p_rate_seconds double precision
)
returns integer
language plpgsql
as $$
-- routine   internal_admit
-- purpose   Return how many messages a dequeue may lease under its queue's limits; from then on it is alone until its transaction ends.
-- promise   P28 P29
-- locks     the gate of the queue
-- errors    RQ713
declare
    v_room integer;
begin
    -- An older snapshot does not show what others have leased since.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'RQ713 wrong_transaction_state: '
            'a queue with max_leased or rate_limit delivers under read committed only'
            using errcode = 'RQ713';
    end if;

    -- Look first, because a poll of a queue without room shall neither wait nor write.
    v_room := rowq.internal_room(
        p_part_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds
    );
    if v_room = 0 or not rowq.internal_lock_gate(p_part_id) then
        return 0;
    end if;

    -- Look again, in statements of their own: their snapshots are newer than the lock, so they see
    -- what the session leased that held the gate before.
    return rowq.internal_room(
        p_part_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds
    );
end;
$$;
