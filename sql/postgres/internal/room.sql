create or replace function rowq.internal_room(p_part_id integer, p_wanted integer)
returns integer
language plpgsql
as $$
-- routine   internal_room
-- purpose   Return how many of the wanted messages a queue's limits leave room for at this moment.
-- promise   P28 P29
declare
    -- The moment is a constant, because a scan that compares with clock_timestamp() itself would
    -- not begin at the first row that counts.
    v_now  constant timestamp with time zone := clock_timestamp();
    v_room bigint;
begin
    -- Begin at the safe floor of the claims, because one that was committed late counts, too.
    select least(
               p_wanted,
               case when q.max_leased > 0 then q.max_leased - (
                   select coalesce(sum(cardinality(c.message_ids)), 0)
                   from rowq.claim c
                   where c.part_id = p_part_id
                     and c.claim_id >= rowq.internal_read_safe_floor(p_part_id, -1::smallint)
               ) end,
               case when q.rate_limit > 0 then q.rate_limit - (
                   select coalesce(sum(s.messages), 0)
                   from rowq.started s
                   where s.part_id = p_part_id
                     and s.started_at > v_now - make_interval(secs => q.rate_seconds)
               ) end
           )
    into v_room
    from rowq.queue q
    where q.part_id = p_part_id;
    return greatest(v_room, 0);
end;
$$;
