create or replace function rowq.get_result(p_queue_name text, p_message_id bigint)
returns table (
    message_id  bigint,
    state       text,
    finished_at timestamp with time zone,
    result      jsonb,
    last_error  text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   get_result
-- version   1
-- purpose   Return the outcome and result of a message, or its state if unfinished.
-- promise   P32
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_found record;
begin
    if p_message_id is null then
        raise exception 'RQ711 invalid_argument: message_id is required'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    v_found := rowq.internal_locate_messages(v_queue.queue_id, p_message_id);
    if v_found.state in ('ready', 'delayed', 'blocked', 'leased') then
        return query
        select p_message_id, v_found.state, null::timestamp with time zone, null::jsonb, null::text;
        return;
    end if;

    -- Read the result last: it was committed together with the end seen above.
    return query
    select r.message_id, r.state, r.finished_at, r.result, r.last_error
    from rowq.result r
    where r.queue_id = v_queue.queue_id
      and r.message_id = p_message_id;
    if found then
        return;
    end if;

    if v_found.state is not null then
        return query
        select p_message_id, v_found.state, v_found.finished_at, null::jsonb, v_found.last_error;
        return;
    end if;
    return query
    select a.message_id, a.state, a.finished_at, null::jsonb, null::text
    from rowq.archive a
    where a.queue_id = v_queue.queue_id
      and a.message_id = p_message_id;
end;
$$;
