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
-- promise   P02 P14
-- locks     new ready rows
-- differs   notifies the sessions that listen
begin
    -- Get the transaction id before the numbers: internal_move_floor relies on this order.
    perform pg_current_xact_id();
    perform rowq.internal_open_lanes(p_part_id, p_lanes);

    insert into rowq.ready (part_id, lane, message_id, attempt, last_error)
    select p_part_id, u.lane, u.message_id, u.attempt, u.last_error
    from unnest(p_lanes, p_message_ids, p_attempts, p_errors)
        with ordinality u (lane, message_id, attempt, last_error, place)
    order by u.place;

    perform rowq.internal_notify(p_part_id);
end;
$$;
