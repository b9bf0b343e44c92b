create or replace function rowq.internal_push_result(
    p_part_id     integer,
    p_message_ids bigint[],
    p_state       text,
    p_errors      text[] default null,
    p_results     jsonb default null,
    p_asked_ids   bigint[] default null
)
returns void
language plpgsql
as $$
-- routine   internal_push_result
-- purpose   Keep how messages have ended, where the queue has result_seconds; p_results go along p_asked_ids, among which they are.
-- promise   P32
-- locks     result rows
begin
    -- A dead message that is cancelled or purged has its row already.
    insert into rowq.result (part_id, message_id, finished_at, state, result, last_error)
    select p_part_id, u.message_id, clock_timestamp(), p_state,
           nullif(p_results -> (array_position(p_asked_ids, u.message_id) - 1), 'null'),
           left(u.last_error, 2000)
    from rowq.queue q
    cross join lateral unnest(p_message_ids, p_errors) u (message_id, last_error)
    where q.part_id = p_part_id
      and q.result_seconds > 0
    on conflict (part_id, message_id) do update
    set finished_at = excluded.finished_at,
        state       = excluded.state,
        result      = excluded.result,
        last_error  = coalesce(excluded.last_error, result.last_error);
end;
$$;
