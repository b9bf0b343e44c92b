create or replace function rowq.internal_with_max_attempts(
    p_part_id      integer,
    p_message_ids  bigint[],
    p_lanes        smallint[],
    p_attempts     smallint[],
    p_max_attempts integer
)
returns table (message_id bigint, lane smallint, attempt smallint, allowed integer)
language plpgsql
as $$
-- routine   internal_with_max_attempts
-- version   1
-- purpose   Messages of a claim with the number of attempts each is allowed.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
#variable_conflict use_column
begin
    return query
    select u.message_id, u.lane, u.attempt, coalesce(m.max_attempts::integer, p_max_attempts)
    from unnest(p_message_ids, p_lanes, p_attempts)
        with ordinality u (message_id, lane, attempt, place)
    cross join lateral (
        -- offset keeps this a lookup for each message, whatever the planner thinks of the sizes
        select x.max_attempts
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = u.message_id
        offset 0
    ) m
    order by u.place;
end;
$$;
