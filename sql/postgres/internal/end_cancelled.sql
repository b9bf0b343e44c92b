create or replace function rowq.internal_end_cancelled(
    p_part_id     integer,
    p_message_ids bigint[],
    p_lanes       smallint[],
    p_attempts    smallint[],
    p_errors      text[],
    p_cancel_ids  bigint[],
    p_claim_id    bigint,
    p_worker_name text,
    p_leased_at   timestamp with time zone,
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_errors      text[],
    out o_cancel_ids  bigint[],
    out o_worker_name text,
    out o_leased_at   timestamp with time zone
)
language plpgsql
as $$
-- routine   internal_end_cancelled
-- purpose   End those messages of a claim that were cancelled; return the others, and which ended.
-- promise   P34 P37
-- locks     new history rows; as internal_finish
declare
    v_archive_days integer;
    v_history_days integer;
    v_ended        record;
begin
    o_worker_name := p_worker_name;
    o_leased_at := p_leased_at;
    select q.archive_days, q.history_days into v_archive_days, v_history_days
    from rowq.queue q
    where q.part_id = p_part_id;

    select array_agg(u.message_id order by u.place) ids,
           array_agg(u.lane order by u.place) lanes,
           array_agg(u.attempt order by u.place) attempts
    into v_ended
    from unnest(p_message_ids, p_lanes, p_attempts)
        with ordinality u (message_id, lane, attempt, place)
    where u.message_id = any (p_cancel_ids);
    if v_history_days > 0 then
        perform rowq.internal_push_history(
            p_part_id, p_claim_id, p_worker_name, p_leased_at, v_ended.ids, v_ended.attempts,
            'cancelled'
        );
    end if;
    perform rowq.internal_finish(
        p_part_id, v_archive_days, v_ended.ids, v_ended.lanes, v_ended.attempts, 'cancelled'
    );
    o_cancel_ids := v_ended.ids;

    select coalesce(array_agg(u.message_id order by u.place), '{}'),
           array_agg(u.lane order by u.place),
           array_agg(u.attempt order by u.place),
           array_agg(u.last_error order by u.place)
    into o_message_ids, o_lanes, o_attempts, o_errors
    from unnest(p_message_ids, p_lanes, p_attempts, p_errors)
        with ordinality u (message_id, lane, attempt, last_error, place)
    where u.message_id <> all (p_cancel_ids);
end;
$$;
