create or replace function rowq.internal_pass_groups(
    p_part_id    integer,
    p_group_keys text[],
    p_is_over    boolean
)
returns text[]
language plpgsql
as $$
-- routine   internal_pass_groups
-- purpose   Pass one token of each group on to its next message, or give it back; return the groups where that cannot be done now.
-- promise   P21 P22 P23 P24
-- locks     grouped and message_group rows, tried only; new ready rows
declare
    v_keys    text[] := p_group_keys;
    v_empty   text[];
    v_left    text[];
    v_look    record;
    v_tokens  smallint[];
    v_lanes   smallint[];
    v_ids     bigint[];
    v_errors  text[];
begin
    -- The second look needs a snapshot of its own, which only read committed takes.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        return p_group_keys;
    end if;

    for v_turn in 1 .. 2 loop
        -- Look at the first message that waits, and lock the first one that nobody holds. With a
        -- limit of 1 these must be the same, because a message that is being cancelled may stay,
        -- and must not be overtaken. A token beyond a limit that was lowered is given back.
        v_empty := null;
        for v_look in
            select u.group_key, q.group_limit, q.group_pause_seconds, f.message_id as first_id,
                   w.message_id, w.lane, w.last_error, s.token_no as surplus_no,
                   v_tokens[u.place] as token_no
            from rowq.queue q
            cross join unnest(v_keys) with ordinality u (group_key, place)
            left join lateral (
                select x.token_no
                from rowq.message_group x
                where x.part_id = p_part_id
                  and x.group_key = u.group_key
                  and x.token_no > q.group_limit
                  and exists (
                      select
                      from rowq.message_group y
                      where y.part_id = p_part_id
                        and y.group_key = u.group_key
                        and y.token_no <= q.group_limit
                  )
                order by x.part_id, x.group_key, x.token_no
                limit 1
                for update skip locked
            ) s on true
            left join lateral (
                select x.message_id
                from rowq.grouped x
                where x.part_id = p_part_id
                  and x.group_key = u.group_key
                order by x.part_id, x.group_key, x.message_id
                limit 1
            ) f on true
            left join lateral (
                select x.message_id, x.lane, x.last_error
                from rowq.grouped x
                where x.part_id = p_part_id
                  and x.group_key = u.group_key
                  and x.message_id >= f.message_id
                order by x.part_id, x.group_key, x.message_id
                limit 1
                for update skip locked
            ) w on true
            where q.part_id = p_part_id
        loop
            if v_look.group_pause_seconds > 0 and not p_is_over then
                v_left := v_left || v_look.group_key;
            elsif v_look.surplus_no is not null then
                delete from rowq.message_group x
                where x.part_id = p_part_id
                  and x.group_key = v_look.group_key
                  and x.token_no = v_look.surplus_no;
            elsif v_look.message_id = v_look.first_id
                  or v_look.message_id is not null and v_look.group_limit > 1 then
                delete from rowq.grouped x
                where x.part_id = p_part_id
                  and x.group_key = v_look.group_key
                  and x.message_id = v_look.message_id;
                v_lanes := v_lanes || v_look.lane;
                v_ids := v_ids || v_look.message_id;
                v_errors := v_errors || v_look.last_error;
            elsif v_look.first_id is not null then
                v_left := v_left || v_look.group_key;
            elsif v_turn = 2 then
                delete from rowq.message_group x
                where x.part_id = p_part_id
                  and x.group_key = v_look.group_key
                  and x.token_no = v_look.token_no;
            else
                v_empty := v_empty || v_look.group_key;
            end if;
        end loop;
        exit when v_empty is null;

        -- Nobody waits. Where a token can be locked, nobody is coming either, and who was coming a
        -- moment ago is there by now, so look once more.
        select array_agg(u.group_key) filter (where t.token_no is not null),
               array_agg(t.token_no) filter (where t.token_no is not null),
               v_left || array_agg(u.group_key) filter (where t.token_no is null)
        into v_keys, v_tokens, v_left
        from unnest(v_empty) u (group_key)
        left join lateral (
            select x.token_no
            from rowq.message_group x
            where x.part_id = p_part_id
              and x.group_key = u.group_key
            order by x.part_id desc, x.group_key desc, x.token_no desc
            limit 1
            for update skip locked
        ) t on true;
        exit when v_keys is null;
    end loop;

    if v_ids is not null then
        perform rowq.internal_push_ready(
            p_part_id, v_lanes, v_ids, array_fill(0::smallint, array[cardinality(v_ids)]), v_errors
        );
    end if;
    return v_left;
end;
$$;
