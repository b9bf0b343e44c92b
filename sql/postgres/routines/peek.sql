create or replace function rowq.peek(p_queue_name text, p_max_messages integer default 1)
returns table (
    message_id   bigint,
    priority     integer,
    attempt      integer,
    message_type text,
    headers      jsonb,
    body         text,
    body_binary  bytea,
    enqueued_at  timestamp with time zone,
    last_error   text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   peek
-- version   1
-- purpose   Show the next ready messages without leasing them.
-- promise   P05
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue   rowq.queue;
    v_lane    smallint := -1;
    v_floor   bigint;
    v_wanted  integer := p_max_messages;
    v_counted integer;
begin
    if p_max_messages is null or p_max_messages not between 1 and 1000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 1000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    while v_wanted > 0 loop
        select f.lane, f.start_seq into v_lane, v_floor
        from rowq.floor f
        where f.queue_id = v_queue.queue_id
          and f.lane > v_lane
        order by f.queue_id, f.lane, f.generation
        limit 1;
        exit when not found;

        return query
        select h.message_id, v_lane / 2, h.attempt::integer, m.message_type, m.headers, m.body,
               m.body_binary, m.enqueued_at, h.last_error
        from (
            select r.message_id, r.attempt, r.last_error, r.seq
            from rowq.ready r
            where r.queue_id = v_queue.queue_id
              and r.lane = v_lane
              and r.seq >= v_floor
            order by r.queue_id, r.lane, r.seq
            limit v_wanted
        ) h
        cross join lateral (
            select x.message_type, x.headers, x.body, x.body_binary, x.enqueued_at
            from rowq.message x
            where x.queue_id = v_queue.queue_id
              and x.message_id = h.message_id
            offset 0
        ) m
        order by h.seq;
        get diagnostics v_counted = row_count;
        v_wanted := v_wanted - v_counted;
    end loop;
end;
$$;
