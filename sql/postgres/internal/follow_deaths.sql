create or replace function rowq.internal_follow_deaths(
    p_part_id     integer,
    p_message_ids bigint[],
    inout p_most_looks  integer default 10000,
    out o_failed_ids    bigint[],
    out o_failed_lanes  smallint[],
    out o_failed_errors text[]
)
language plpgsql
as $$
-- routine   internal_follow_deaths
-- purpose   Let the messages go on that wait for a dead one and do not mind; return those that fail with it. p_most_looks is as for internal_unblock.
-- promise   P27
-- locks     message rows, tried only; successor rows; as internal_unblock; new recheck rows
declare
    c_most     constant integer := 1000;
    v_awaited  bigint[];
    v_later    bigint[];
    v_dead_id  bigint;
    v_ids      bigint[];
    v_count    integer := 0;
    v_done     record;
begin
    -- Where a row is locked, a producer is adding a message that waits: look again when it is
    -- there.
    select array_agg(u.message_id) filter (where m.has_successors),
           array_agg(u.message_id) filter (where m.message_id is null)
    into v_awaited, v_later
    from unnest(p_message_ids) u (message_id)
    left join lateral (
        select x.message_id, x.has_successors
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = u.message_id
        for update skip locked
    ) m on true;
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        v_later := v_later || v_awaited;
        v_awaited := null;
    end if;

    foreach v_dead_id in array coalesce(v_awaited, '{}') loop
        -- A wide tree dies in steps, too.
        if v_count >= c_most then
            v_later := v_later || v_dead_id;
            continue;
        end if;
        select array_agg(h.message_id order by h.message_id) into v_ids
        from (
            select s.message_id
            from rowq.successor s
            cross join lateral (
                select
                from rowq.blocked b
                where b.part_id = p_part_id
                  and b.message_id = s.message_id
                  and b.on_dead in ('continue', 'fail')
                offset 0
            ) b
            where s.part_id = p_part_id
              and s.predecessor_id = v_dead_id
            order by s.part_id, s.predecessor_id, s.message_id
            limit c_most
            for update of s skip locked
        ) h;
        continue when v_ids is null;
        delete from rowq.successor s
        where s.part_id = p_part_id
          and s.predecessor_id = v_dead_id
          and s.message_id = any (v_ids);
        if cardinality(v_ids) = c_most then
            v_later := v_later || v_dead_id;
        end if;
        v_count := v_count + cardinality(v_ids);

        v_done := rowq.internal_unblock(p_part_id, v_ids, null, p_most_looks);
        p_most_looks := v_done.p_most_looks;
        if v_done.o_again is not null then
            perform rowq.internal_recheck_later(p_part_id, v_done.o_again, null, false);
        end if;
        o_failed_ids := o_failed_ids || v_done.o_failed_ids;
        o_failed_lanes := o_failed_lanes || v_done.o_failed_lanes;
        o_failed_errors := o_failed_errors || v_done.o_failed_errors;
    end loop;

    if v_later is not null then
        perform rowq.internal_recheck_later(p_part_id, null, v_later, true);
    end if;
end;
$$;
