create or replace function rowq.internal_block_batch(
    p_part_id     integer,
    p_given       jsonb,
    p_messages    rowq.message[],
    p_kept_ids    bigint[],
    p_lanes       smallint[],
    p_due_ats     timestamp with time zone[],
    p_now         timestamp with time zone,
    p_awaited_ids bigint[]
)
returns bigint[]
language plpgsql
as $$
-- routine   internal_block_batch
-- purpose   Let new messages of a batch wait for their predecessors; return those that do, or have failed. p_awaited_ids are messages of the batch that others of it wait for.
-- promise   P15 P25 P26 P27
-- locks     as internal_block; new successor and blocked rows
-- errors    RQ711
declare
    v_row      record;
    v_ids      bigint[];
    v_newest   bigint;
    v_is_first boolean := true;
    v_blocked  bigint[] := '{}'::bigint[];
begin
    for v_row in
        select m.place, m.message_id, m.kept_id, m.group_key, m.lane,
               case when m.due_at > p_now then m.due_at end as due_at,
               m.predecessor_ids, m.predecessor_positions, m.on_predecessor_dead
        from rows from (
            jsonb_to_recordset(p_given) as (
                predecessor_ids       bigint[],
                predecessor_positions integer[],
                on_predecessor_dead   text
            ),
            unnest(p_messages),
            unnest(p_kept_ids),
            unnest(p_lanes),
            unnest(p_due_ats)
        ) with ordinality m (
            predecessor_ids, predecessor_positions, on_predecessor_dead,
            part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
            group_key, headers, body, body_binary, has_successors, kept_id, lane, due_at, place
        )
        where num_nonnulls(
            m.predecessor_ids, m.predecessor_positions, m.on_predecessor_dead
        ) > 0
    loop
        perform rowq.internal_refuse_predecessors(
            v_row.place, p_messages[1].message_id, v_row.predecessor_ids,
            v_row.predecessor_positions, v_row.on_predecessor_dead
        );
        continue when v_row.message_id <> v_row.kept_id;

        select array_agg(distinct u.message_id order by u.message_id), max(u.message_id)
        into v_ids, v_newest
        from (
            select unnest(v_row.predecessor_ids)
            union all
            select p_kept_ids[p.place]
            from unnest(v_row.predecessor_positions) p (place)
        ) u (message_id);
        continue when v_ids is null;

        if v_newest = any (p_awaited_ids) then
            -- Nobody else sees this predecessor yet, so it needs no lock.
            if v_is_first then
                perform rowq.internal_open_lanes(p_part_id, '{-4}'::smallint[]);
                v_is_first := false;
            end if;
            insert into rowq.successor (part_id, predecessor_id, message_id)
            values (p_part_id, v_newest, v_row.message_id);
            insert into rowq.blocked (
                part_id, lane, message_id, predecessor_id, due_at, on_dead, group_key, rest_ids
            )
            values (
                p_part_id, v_row.lane, v_row.message_id, v_newest, v_row.due_at,
                v_row.on_predecessor_dead, v_row.group_key,
                nullif(array_remove(v_ids, v_newest), '{}')
            );
            v_blocked := v_blocked || v_row.message_id;
        elsif rowq.internal_block(
            p_part_id, v_row.message_id, v_row.lane, v_row.due_at, v_row.group_key, v_ids,
            v_row.on_predecessor_dead
        ) then
            v_blocked := v_blocked || v_row.message_id;
            -- One that has failed already is looked at by those of the batch that name it.
            if v_row.on_predecessor_dead = 'fail' and exists (
                select
                from rowq.dead d
                where d.part_id = p_part_id
                  and d.message_id = v_row.message_id
            ) then
                p_awaited_ids := array_remove(p_awaited_ids, v_row.message_id);
            end if;
        end if;
    end loop;

    return v_blocked;
exception
    when data_exception then
        perform rowq.internal_refuse_bad_value(e.message, e.place::integer)
        from jsonb_array_elements(p_given) with ordinality e (message, place);
        raise;
end;
$$;
