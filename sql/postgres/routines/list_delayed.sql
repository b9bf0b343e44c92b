create or replace function rowq.list_delayed(
    p_queue_name       text,
    p_after_due_at     timestamp with time zone default null,
    p_after_message_id bigint default 0,
    p_max_messages     integer default 100
)
returns table (
    message_id   bigint,
    priority     integer,
    attempt      integer,
    message_type text,
    due_at       timestamp with time zone,
    last_error   text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
-- routine   list_delayed
-- version   1
-- purpose   List delayed messages in the order in which they become due, without bodies.
-- promise   P11
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue rowq.queue;
    v_from  timestamp with time zone;
    v_after bigint := coalesce(p_after_message_id, 0);
begin
    if p_max_messages is null or p_max_messages not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: max_messages must be between 1 and 10000, got %',
            p_max_messages
            using errcode = 'RQ711';
    end if;
    if p_after_due_at is null and v_after <> 0 then
        raise exception 'RQ711 invalid_argument: '
            'after_message_id requires after_due_at'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- Begin at the floor, to skip dead rows.
    v_from := rowq.internal_from_microseconds(
        rowq.internal_read_safe_floor(v_queue.queue_id, -2::smallint /* delayed */)
    );
    if p_after_due_at >= v_from then
        v_from := p_after_due_at;
    else
        v_after := 0;
    end if;

    return query
    select d.message_id, d.lane / 2, d.attempt::integer, m.message_type, d.due_at, d.last_error
    from rowq.delayed d
    cross join lateral (
        -- "offset 0" keeps this a lookup by key for each message.
        select x.message_type
        from rowq.message x
        where x.queue_id = d.queue_id
          and x.message_id = d.message_id
        offset 0
    ) m
    where d.queue_id = v_queue.queue_id
      and (d.due_at, d.message_id) > (v_from, v_after)
    order by d.queue_id, d.due_at, d.message_id
    limit p_max_messages;
end;
$$;
