create or replace function rowq.internal_room(
    p_part_id      integer,
    p_wanted       integer,
    p_max_leased   integer,
    p_rate_limit   integer,
    p_rate_seconds double precision
)
returns integer
language plpgsql
as $$
-- routine   internal_room
-- purpose   Return how many of the wanted messages a queue's limits leave room for at this moment.
-- promise   P28 P29
declare
    -- The moment is no function in the query, because a scan that compares with clock_timestamp()
    -- itself would not begin at the first row that counts.
    v_since constant timestamp with time zone :=
        clock_timestamp() - make_interval(secs => p_rate_seconds);
    v_from  bigint;
    v_room  bigint;
begin
    -- Begin at the safe floor of the claims, because one that was committed late counts, too.
    if p_max_leased > 0 then
        v_from := rowq.internal_read_safe_floor(p_part_id, -1::smallint /* claim */);
    end if;
    v_room := least(
        p_wanted,
        case when p_max_leased > 0 then p_max_leased - (
            select coalesce(sum(cardinality(c.message_ids)), 0)
            from rowq.claim c
            where c.part_id = p_part_id
              and c.claim_id >= v_from
        ) end,
        case when p_rate_limit > 0 then p_rate_limit - (
            select coalesce(sum(s.messages), 0)
            from rowq.started s
            where s.part_id = p_part_id
              and s.started_at > v_since
        ) end
    );
    return greatest(v_room, 0);
end;
$$;
