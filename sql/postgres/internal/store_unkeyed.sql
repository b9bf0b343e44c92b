create or replace function rowq.internal_store_unkeyed(
    p_part_id    integer,
    p_messages   jsonb,
    p_max_length integer,
    p_now        timestamp with time zone,
    out o_message_ids bigint[],
    out o_lanes       smallint[]
)
language plpgsql
as $$
-- routine   internal_store_unkeyed
-- purpose   Store the messages of a batch of which none has a dedup key.
-- promise   P01 P05 P11 P36
-- locks     new rows only
-- errors    RQ711
-- differs   elsewhere part of enqueue_batch: here one statement writes all rows
declare
    v_expires boolean;
begin
    with given as materialized (
        select nextval('rowq.message_seq') as message_id, p.*,
               (p.priority * 2 + 1)::smallint as lane,
               coalesce(p.run_at, p_now + make_interval(secs => p.delay_seconds)) as due_at,
               p_now + make_interval(secs => p.expire_seconds) as expires_at
        from rowq.internal_parse_messages(p_messages, p_max_length) p
    ),
    stored as (
        insert into rowq.message (
            part_id, max_attempts, message_id, enqueued_at, message_type, headers, body,
            body_binary, expires_at
        )
        select p_part_id, g.max_attempts, g.message_id, p_now, g.message_type, g.headers, g.body,
               g.body_binary, g.expires_at
        from given g
    ),
    put_off as (
        insert into rowq.delayed (part_id, lane, message_id, due_at)
        select p_part_id, g.lane, g.message_id, g.due_at
        from given g
        where g.due_at > p_now
    ),
    queued as (
        insert into rowq.ready (part_id, lane, seq, message_id)
        select p_part_id, g.lane, g.message_id, g.message_id
        from given g
        where g.due_at <= p_now
           or g.due_at is null
    ),
    expiring as (
        insert into rowq.expiry (part_id, lane, expires_at, message_id, seq)
        select p_part_id, g.lane, least(g.expires_at, p_now + interval '1 day'), g.message_id,
               g.message_id
        from given g
        where g.expires_at is not null
    )
    select array_agg(g.message_id order by g.place),
           array_agg(g.lane) filter (where g.due_at <= p_now or g.due_at is null),
           bool_or(g.expires_at is not null)
    into o_message_ids, o_lanes, v_expires
    from given g;
    if v_expires then
        perform rowq.internal_open_lanes(p_part_id, '{-6}'::smallint[] /* expiry */);
    end if;
end;
$$;
