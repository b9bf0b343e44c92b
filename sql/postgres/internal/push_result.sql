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
declare
    v_is_kept boolean;
begin
    -- complete, which knows the setting, asks only where results are kept.
    if p_state <> 'completed' then
        select q.result_seconds > 0 into v_is_kept
        from rowq.queue q
        where q.part_id = p_part_id;
        if v_is_kept is not true then
            return;
        end if;
    end if;

    -- A dead message that is cancelled or purged has its row already.
    insert into rowq.result (part_id, message_id, finished_at, state, result, last_error)
    select p_part_id, u.message_id, clock_timestamp(), p_state,
           nullif(p_results -> (array_position(p_asked_ids, u.message_id) - 1), 'null'),
           left(u.last_error, 2000)
    from unnest(p_message_ids, p_errors) u (message_id, last_error)
    on conflict (part_id, message_id) do update
    set finished_at = excluded.finished_at,
        state       = excluded.state,
        result      = excluded.result,
        last_error  = coalesce(excluded.last_error, result.last_error);
end;
$$;
