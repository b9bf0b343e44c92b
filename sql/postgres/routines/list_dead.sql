create or replace function rowq.list_dead(
    p_queue_name        text,
    p_after_message_id  bigint default 0,
    p_max_messages      integer default 100,
    p_before_message_id bigint default null,
    p_message_type      text default null
)
returns table (
    message_id   bigint,
    priority     integer,
    attempt      integer,
    message_type text,
    enqueued_at  timestamp with time zone,
    died_at      timestamp with time zone,
    last_error   text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
-- routine   list_dead
-- version   1
-- purpose   List dead messages by id, forwards or backwards, without bodies.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
begin
    if p_max_messages is null or p_max_messages not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 10000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    if p_before_message_id is null then
        return query
        select d.message_id, d.lane / 2, d.attempt::integer, m.message_type, m.enqueued_at,
               d.died_at, d.last_error
        from rowq.dead d
        cross join lateral (
            -- "offset 0" keeps this a lookup by key for each dead message.
            select x.message_type, x.enqueued_at
            from rowq.message x
            where x.queue_id = d.queue_id
              and x.message_id = d.message_id
            offset 0
        ) m
        where d.queue_id = v_queue.queue_id
          and d.message_id > coalesce(p_after_message_id, 0)
          and (p_message_type is null or m.message_type = p_message_type)
        order by d.queue_id, d.message_id
        limit p_max_messages;
    else
        return query
        select d.message_id, d.lane / 2, d.attempt::integer, m.message_type, m.enqueued_at,
               d.died_at, d.last_error
        from rowq.dead d
        cross join lateral (
            select x.message_type, x.enqueued_at
            from rowq.message x
            where x.queue_id = d.queue_id
              and x.message_id = d.message_id
            offset 0
        ) m
        where d.queue_id = v_queue.queue_id
          and d.message_id > coalesce(p_after_message_id, 0)
          and d.message_id < p_before_message_id
          and (p_message_type is null or m.message_type = p_message_type)
        order by d.queue_id desc, d.message_id desc
        limit p_max_messages;
    end if;
end;
$$;
