create or replace function rowq.internal_pop_waiting(
    p_part_id     integer,
    p_message_ids bigint[],
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_tokenless   bigint[]
)
language plpgsql
as $$
-- routine   internal_pop_waiting
-- purpose   Take messages out of wherever they wait; those that a worker holds stay. o_tokenless are those without a token of a group.
-- promise   P03
-- locks     delayed, dead, blocked, grouped and ready rows, passing over locked ones
declare
    v_rest  bigint[];
    v_found record;
begin
    with locked as (
        select d.message_id
        from rowq.delayed d
        where d.part_id = p_part_id
          and d.message_id = any (p_message_ids)
        for update skip locked
    ),
    gone as (
        delete from rowq.delayed d
        where d.part_id = p_part_id
          and d.message_id = any (array(select l.message_id from locked l))
        returning d.message_id, d.lane, d.attempt, d.group_key is not null as is_tokenless
    )
    select coalesce(array_agg(g.message_id), '{}'), coalesce(array_agg(g.lane), '{}'),
           coalesce(array_agg(g.attempt), '{}'),
           array_agg(g.message_id) filter (where g.is_tokenless)
    into o_message_ids, o_lanes, o_attempts, o_tokenless
    from gone g;

    with locked as (
        select d.message_id
        from rowq.dead d
        where d.part_id = p_part_id
          and d.message_id = any (p_message_ids)
        for update skip locked
    ),
    gone as (
        delete from rowq.dead d
        where d.part_id = p_part_id
          and d.message_id = any (array(select l.message_id from locked l))
        returning d.message_id, d.lane, d.attempt, d.holds_group is null as is_tokenless
    )
    select o_message_ids || array_agg(g.message_id), o_lanes || array_agg(g.lane),
           o_attempts || array_agg(g.attempt),
           o_tokenless || array_agg(g.message_id) filter (where g.is_tokenless)
    into o_message_ids, o_lanes, o_attempts, o_tokenless
    from gone g;

    -- A message that was never given back is in the tail lane of its priority, where its seq is its
    -- message_id.
    for v_found in
        select r.lane, r.seq, r.message_id, r.attempt
        from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = any ('{1,3,5,7,9,11,13,15,17,19}'::smallint[])
          and r.seq = any (p_message_ids)
          and r.message_id = r.seq
        for update skip locked
    loop
        delete from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = v_found.lane
          and r.seq = v_found.seq;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || v_found.attempt;
    end loop;

    for v_found in
        select b.message_id, b.lane
        from rowq.blocked b
        where b.part_id = p_part_id
          and b.message_id = any (p_message_ids)
        for update skip locked
    loop
        delete from rowq.blocked b
        where b.part_id = p_part_id
          and b.message_id = v_found.message_id;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || 0::smallint;
        o_tokenless := o_tokenless || v_found.message_id;
    end loop;

    select array_agg(m.message_id) into v_rest
    from rowq.message m
    where m.part_id = p_part_id
      and m.message_id = any (p_message_ids)
      and m.message_id <> all (o_message_ids);
    if v_rest is null then
        return;
    end if;

    -- A message goes from its group to the ready ones, so look for it there first.
    for v_found in
        select x.group_key, x.message_id, x.lane
        from rowq.message m
        cross join lateral (
            select w.group_key, w.message_id, w.lane
            from rowq.grouped w
            where w.part_id = p_part_id
              and w.group_key = m.group_key
              and w.message_id = m.message_id
            for update skip locked
        ) x
        where m.part_id = p_part_id
          and m.message_id = any (v_rest)
          and m.group_key is not null
    loop
        delete from rowq.grouped x
        where x.part_id = p_part_id
          and x.group_key = v_found.group_key
          and x.message_id = v_found.message_id;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || 0::smallint;
        o_tokenless := o_tokenless || v_found.message_id;
        v_rest := array_remove(v_rest, v_found.message_id);
    end loop;
    if v_rest = '{}' then
        return;
    end if;

    for v_found in
        select r.lane, r.seq, r.message_id, r.attempt
        from rowq.ready r
        where r.part_id = p_part_id
          and r.message_id = any (v_rest)
        for update skip locked
    loop
        delete from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = v_found.lane
          and r.seq = v_found.seq;
        o_message_ids := o_message_ids || v_found.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || v_found.attempt;
    end loop;
end;
$$;
