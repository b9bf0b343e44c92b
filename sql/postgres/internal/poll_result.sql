create or replace function rowq.internal_poll_result(
    p_queue_name text,
    p_message_id bigint,
    p_until      timestamp with time zone,
    p_pause      double precision,
    out o_answer jsonb,
    out o_pause  double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   internal_poll_result
-- purpose   Look once for wait_for_result: return the row of get_result as JSON object, else the pause before the next look; p_pause is the one before this look.
-- promise   P32
-- errors    RQ701 RQ711
-- differs   only where the caller's path reaches into wait_for_result
declare
    v_part_id        integer;
    v_result_seconds double precision;
    v_is_last        constant boolean := clock_timestamp() >= p_until;
    v_has_ended      boolean;
begin
    select q.part_id, q.result_seconds into v_part_id, v_result_seconds
    from rowq.queue q
    where q.queue_name = p_queue_name;

    -- The first look and the last one ask where the message is. Those between need no more than
    -- the result, which is found by its key. A queue that is not here may be on another node of a
    -- cluster: get_result goes there, or refuses.
    if v_part_id is null or p_pause is null or v_is_last then
        select to_jsonb(g), g.finished_at is not null
        into o_answer, v_has_ended
        from rowq.get_result(p_queue_name, p_message_id) g;
        if v_has_ended is not false or v_is_last then
            return;
        end if;
        o_answer := null;
    else
        select to_jsonb(h) into o_answer
        from (
            select r.message_id, r.state, r.finished_at, r.result, r.last_error
            from rowq.result r
            where r.part_id = v_part_id
              and r.message_id = p_message_id
        ) h;
        if found then
            return;
        end if;
    end if;

    if v_part_id is null and p_pause is null then
        v_result_seconds := (
            select s.result_seconds from rowq.queue_stats(p_queue_name, 1) s
        );
    end if;
    if v_result_seconds = 0 then
        raise exception
            'RQ711 invalid_argument: the queue keeps no results: its result_seconds is 0'
            using errcode = 'RQ711';
    end if;

    o_pause := least(
        coalesce(p_pause * 2, 0.02), 0.25, extract(epoch from p_until - clock_timestamp())
    );
end;
$$;
