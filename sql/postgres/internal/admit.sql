create or replace function rowq.internal_admit(
    p_part_id      integer,
    p_wanted       integer,
    p_max_leased   integer,
    p_rate_limit   integer,
    p_rate_seconds double precision,
    out o_room       integer,
    out o_rate_limit integer
)
language plpgsql
as $$
-- routine   internal_admit
-- purpose   Return how many messages a dequeue may lease under its queue's limits, and the rate_limit by then; from then on it is alone until its transaction ends.
-- promise   P28 P29
-- locks     the gate of the queue
-- errors    RQ713
declare
    v_is_paused boolean;
begin
    -- An older snapshot does not show what others have leased since.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'RQ713 wrong_transaction_state: '
            'a queue with max_leased or rate_limit delivers under read committed only'
            using errcode = 'RQ713';
    end if;

    -- Look first, because a poll of a queue without room shall neither wait nor write.
    o_room := rowq.internal_room(
        p_part_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds
    );
    if o_room = 0 then
        return;
    end if;
    o_room := 0;
    if not rowq.internal_lock_gate(p_part_id) then
        return;
    end if;

    -- Look again, in statements of their own: their snapshots are newer than the lock, so they see
    -- what the session leased that held the gate before, and settings that were changed meanwhile.
    select q.paused_at is not null, q.max_leased, q.rate_limit, q.rate_seconds
    into v_is_paused, p_max_leased, o_rate_limit, p_rate_seconds
    from rowq.queue q
    where q.part_id = p_part_id;
    if not v_is_paused then
        o_room := rowq.internal_room(
            p_part_id, p_wanted, p_max_leased, o_rate_limit, p_rate_seconds
        );
    end if;
end;
$$;
