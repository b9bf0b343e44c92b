create or replace function rowq.internal_push_ready(
    p_part_id     integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_errors      text[]
)
returns void
language plpgsql
as $$
-- routine   internal_push_ready
-- purpose   Append messages to lanes, in the order of the arrays, under new numbers.
-- promise   P02 P14 P36
-- locks     new ready and expiry rows
-- differs   notifies the sessions that listen
begin
    -- Get the transaction id before the numbers: internal_move_floor relies on this order.
    perform pg_current_xact_id();
    perform rowq.internal_open_lanes(p_part_id, p_lanes);

    -- internal_expire looks for a message where this says. Only a queue that has had messages that
    -- expire has that lane, and without it the messages are not looked up.
    with pushed as (
        insert into rowq.ready as r (part_id, lane, message_id, attempt, last_error)
        select p_part_id, u.lane, u.message_id, u.attempt, u.last_error
        from unnest(p_lanes, p_message_ids, p_attempts, p_errors)
            with ordinality u (lane, message_id, attempt, last_error, place)
        order by u.place
        returning r.lane, r.seq, r.message_id
    )
    insert into rowq.expiry (part_id, lane, expires_at, message_id, seq)
    select p_part_id, p.lane, greatest(m.expires_at, clock_timestamp()), p.message_id, p.seq
    from pushed p
    cross join lateral (
        select case
                   when x.expires_at is not null
                       then least(x.expires_at, clock_timestamp() + interval '1 day')
               end as expires_at
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = p.message_id
        offset 0
    ) m
    where m.expires_at is not null
      and exists (
          select
          from rowq.floor f
          where f.part_id = p_part_id
            and f.lane = -6 /* expiry */
      );

    perform rowq.internal_notify(p_part_id);
end;
$$;
