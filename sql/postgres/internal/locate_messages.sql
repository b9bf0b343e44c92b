create or replace function rowq.internal_locate_messages(
    p_part_id    integer,
    p_message_id bigint,
    out state       text,
    out lane        smallint,
    out attempt     smallint,
    out due_at      timestamp with time zone,
    out claim_id    bigint,
    out worker_name text,
    out lease_until timestamp with time zone,
    out finished_at timestamp with time zone,
    out last_error  text,
    out waits_for   bigint,
    out progress    text,
    out leased_at   timestamp with time zone
)
language plpgsql
as $$
-- routine   internal_locate_messages
-- purpose   Find where a message is that still has a body; state is null for any other one.
#variable_conflict use_column
declare
    v_group_key text;
    v_from      bigint;
begin
    select m.group_key into v_group_key
    from rowq.message m
    where m.part_id = p_part_id
      and m.message_id = p_message_id;
    if not found then
        return;
    end if;

    select 'delayed', d.lane, d.attempt, d.due_at, d.last_error
    into state, lane, attempt, due_at, last_error
    from rowq.delayed d
    where d.part_id = p_part_id
      and d.message_id = p_message_id;
    if found then
        return;
    end if;

    select 'dead', d.lane, d.attempt, d.died_at, d.last_error
    into state, lane, attempt, finished_at, last_error
    from rowq.dead d
    where d.part_id = p_part_id
      and d.message_id = p_message_id;
    if found then
        return;
    end if;

    select 'blocked', b.lane, 0, b.due_at, b.predecessor_id
    into state, lane, attempt, due_at, waits_for
    from rowq.blocked b
    where b.part_id = p_part_id
      and b.message_id = p_message_id;
    if found then
        return;
    end if;

    if v_group_key is not null then
        select 'blocked', x.lane, 0, x.last_error, (
                   select max(y.message_id)
                   from rowq.grouped y
                   where y.part_id = p_part_id
                     and y.group_key = v_group_key
                     and y.message_id < p_message_id
               )
        into state, lane, attempt, last_error, waits_for
        from rowq.grouped x
        where x.part_id = p_part_id
          and x.group_key = v_group_key
          and x.message_id = p_message_id;
        if found then
            return;
        end if;
    end if;

    v_from := rowq.internal_read_safe_floor(p_part_id, -1::smallint /* claim */);
    select 'leased', c.lanes[p.place], c.attempts[p.place], c.claim_id, c.worker_name,
           c.lease_until, c.errors[p.place], c.progress, c.leased_at
    into state, lane, attempt, claim_id, worker_name, lease_until, last_error, progress, leased_at
    from rowq.claim c
    cross join lateral array_position(c.message_ids, p_message_id) p (place)
    where c.part_id = p_part_id
      and c.claim_id >= v_from
      and p_message_id = any (c.message_ids);
    if found then
        return;
    end if;

    v_from := rowq.internal_read_safe_floor(p_part_id, -3::smallint /* finished */);
    select f.state, f.lanes[p.place], f.attempts[p.place], f.finished_at
    into state, lane, attempt, finished_at
    from rowq.finished f
    cross join lateral array_position(f.message_ids, p_message_id) p (place)
    where f.part_id = p_part_id
      and f.finish_id >= v_from
      and p_message_id = any (f.message_ids);
    if found then
        return;
    end if;

    -- A message that was never given back is in the tail lane of its priority, where its seq is its
    -- message_id.
    select 'ready', r.lane, r.attempt, r.last_error
    into state, lane, attempt, last_error
    from unnest('{1,3,5,7,9,11,13,15,17,19}'::smallint[]) l (lane)
    cross join lateral (
        -- "offset 0" keeps this a lookup by key for each lane.
        select x.lane, x.attempt, x.last_error
        from rowq.ready x
        where x.part_id = p_part_id
          and x.lane = l.lane
          and x.seq = p_message_id
          and x.message_id = p_message_id
        offset 0
    ) r;
    if found then
        return;
    end if;

    select 'ready', r.lane, r.attempt, r.last_error
    into state, lane, attempt, last_error
    from rowq.ready r
    where r.part_id = p_part_id
      and r.message_id = p_message_id;
    if not found then
        -- Another session has moved the message from one place to another between these looks, so
        -- it is in that session's hands: report it as leased.
        state := 'leased';
    end if;
end;
$$;
