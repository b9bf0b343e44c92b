create or replace function rowq.internal_pop_expired(
    p_part_id     integer,
    p_message_ids bigint[],
    p_places      text[],
    p_lanes       smallint[],
    p_seqs        bigint[],
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_tokenless   bigint[]
)
language plpgsql
as $$
-- routine   internal_pop_expired
-- purpose   Take messages out of the places where they were seen, unless another session holds them. o_tokenless are those without a token of a group.
-- promise   P03 P36
-- locks     ready, delayed, blocked and grouped rows, tried only
declare
    v_row   record;
    v_found record;
begin
    o_message_ids := '{}';
    for v_row in
        select u.message_id, u.place, u.lane, u.seq, m.group_key
        from unnest(p_message_ids, p_places, p_lanes, p_seqs) u (message_id, place, lane, seq)
        cross join lateral (
            select x.group_key
            from rowq.message x
            where x.part_id = p_part_id
              and x.message_id = u.message_id
            offset 0
        ) m
        where u.place <> 'later'
    loop
        case v_row.place
            when 'ready' then
                select r.lane, r.attempt, false as is_tokenless into v_found
                from rowq.ready r
                where r.part_id = p_part_id
                  and r.lane = v_row.lane
                  and r.seq = v_row.seq
                  and r.message_id = v_row.message_id
                for update skip locked;
            when 'delayed' then
                select d.lane, d.attempt, d.group_key is not null as is_tokenless into v_found
                from rowq.delayed d
                where d.part_id = p_part_id
                  and d.message_id = v_row.message_id
                for update skip locked;
            when 'blocked' then
                select b.lane, 0::smallint as attempt, true as is_tokenless into v_found
                from rowq.blocked b
                where b.part_id = p_part_id
                  and b.message_id = v_row.message_id
                for update skip locked;
            else
                select g.lane, 0::smallint as attempt, true as is_tokenless into v_found
                from rowq.grouped g
                where g.part_id = p_part_id
                  and g.group_key = v_row.group_key
                  and g.message_id = v_row.message_id
                for update skip locked;
        end case;
        continue when not found;

        case v_row.place
            when 'ready' then
                delete from rowq.ready r
                where r.part_id = p_part_id
                  and r.lane = v_row.lane
                  and r.seq = v_row.seq;
            when 'delayed' then
                delete from rowq.delayed d
                where d.part_id = p_part_id
                  and d.message_id = v_row.message_id;
            when 'blocked' then
                delete from rowq.blocked b
                where b.part_id = p_part_id
                  and b.message_id = v_row.message_id;
            else
                delete from rowq.grouped g
                where g.part_id = p_part_id
                  and g.group_key = v_row.group_key
                  and g.message_id = v_row.message_id;
        end case;
        o_message_ids := o_message_ids || v_row.message_id;
        o_lanes := o_lanes || v_found.lane;
        o_attempts := o_attempts || v_found.attempt;
        if v_found.is_tokenless then
            o_tokenless := o_tokenless || v_row.message_id;
        end if;
    end loop;
end;
$$;
