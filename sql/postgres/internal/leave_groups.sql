create or replace function rowq.internal_leave_groups(p_part_id integer, p_group_keys text[])
returns void
language plpgsql
as $$
-- routine   internal_leave_groups
-- purpose   Pass on the tokens of messages that have ended, one for each element; leave to maintain those that cannot be passed on now.
-- promise   P22 P24
-- locks     as internal_pass_groups; new recheck rows
declare
    v_keys  text[] := p_group_keys;
    v_again text[];
    v_left  text[];
    v_pause double precision;
begin
    -- Several messages of one group may end at once where its limit is above 1: one after the
    -- other.
    while v_keys is not null loop
        if cardinality(v_keys) > 1 then
            select array_agg(u.group_key order by u.group_key) filter (where u.turn = 1),
                   array_agg(u.group_key) filter (where u.turn > 1)
            into v_keys, v_again
            from (
                select k.group_key, row_number() over (partition by k.group_key) as turn
                from unnest(v_keys) k (group_key)
            ) u;
        else
            v_again := null;
        end if;
        v_left := v_left || rowq.internal_pass_groups(p_part_id, v_keys, false);
        v_keys := v_again;
    end loop;

    if v_left is not null then
        select q.group_pause_seconds into v_pause
        from rowq.queue q
        where q.part_id = p_part_id;
        perform rowq.internal_open_lanes(p_part_id, '{-4}'::smallint[] /* deferred */);
        insert into rowq.recheck (part_id, due_at, group_key)
        select p_part_id, clock_timestamp() + make_interval(secs => v_pause), u.group_key
        from unnest(v_left) u (group_key);
    end if;
end;
$$;
