create or replace function rowq.internal_push_delayed(
    p_part_id     integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_due_ats     timestamp with time zone[],
    p_now         timestamp with time zone,
    p_error       text
)
returns void
language plpgsql
as $$
-- routine   internal_push_delayed
-- purpose   Let messages wait for their time; those that are due by p_now are ready at once.
-- promise   P10 P11 P36
-- locks     new delayed, ready and expiry rows
declare
    v_ready record;
begin
    insert into rowq.delayed (part_id, lane, attempt, message_id, due_at, last_error)
    select p_part_id, u.lane, u.attempt, u.message_id, u.due_at, p_error
    from unnest(p_lanes, p_message_ids, p_attempts, p_due_ats) u (lane, message_id, attempt, due_at)
    where u.due_at > p_now;

    perform rowq.internal_note_expiry(p_part_id, p_message_ids);

    select array_agg(u.lane) lanes, array_agg(u.message_id) ids, array_agg(u.attempt) attempts
    into v_ready
    from unnest(p_lanes, p_message_ids, p_attempts, p_due_ats) u (lane, message_id, attempt, due_at)
    where u.due_at <= p_now;

    if v_ready.ids is not null then
        perform rowq.internal_push_ready(
            p_part_id, v_ready.lanes, v_ready.ids, v_ready.attempts,
            array_fill(p_error, array[cardinality(v_ready.ids)])
        );
    end if;
end;
$$;
