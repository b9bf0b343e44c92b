create or replace function rowq.internal_parse_predecessors(
    p_part_id     integer,
    p_given       jsonb,
    p_message_ids bigint[],
    p_group_keys  text[],
    p_kept_ids    bigint[],
    p_lanes       smallint[],
    p_due_ats     timestamp with time zone[],
    p_now         timestamp with time zone
)
returns rowq.blocked[]
language plpgsql
as $$
-- routine   internal_parse_predecessors
-- purpose   Check the predecessors of a batch and return its new messages that may have to wait, with all of their predecessors in rest_ids.
-- promise   P15 P25
-- errors    RQ711
declare
    v_row  record;
    v_ids  bigint[];
    v_tie  rowq.blocked;
    v_ties rowq.blocked[] := '{}'::rowq.blocked[];
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
            unnest(p_message_ids),
            unnest(p_group_keys),
            unnest(p_kept_ids),
            unnest(p_lanes),
            unnest(p_due_ats)
        ) with ordinality m (
            predecessor_ids, predecessor_positions, on_predecessor_dead, message_id, group_key,
            kept_id, lane, due_at, place
        )
        where num_nonnulls(
            m.predecessor_ids, m.predecessor_positions, m.on_predecessor_dead
        ) > 0
    loop
        perform rowq.internal_refuse_predecessors(
            v_row.place, p_message_ids[1], v_row.predecessor_ids,
            v_row.predecessor_positions, v_row.on_predecessor_dead
        );
        continue when v_row.message_id <> v_row.kept_id;

        select array_agg(distinct u.message_id order by u.message_id) into v_ids
        from (
            select unnest(v_row.predecessor_ids)
            union all
            select p_kept_ids[p.place]
            from unnest(v_row.predecessor_positions) p (place)
        ) u (message_id);

        -- Whose predecessors have all ended joins its group in its turn among the batch's others.
        if v_ids is not null and (
            v_row.group_key is null
            or v_row.due_at is not null
            or rowq.internal_has_unended(p_part_id, v_ids, v_row.on_predecessor_dead)
        ) then
            v_tie.lane := v_row.lane;
            v_tie.message_id := v_row.message_id;
            v_tie.due_at := v_row.due_at;
            v_tie.on_dead := v_row.on_predecessor_dead;
            v_tie.group_key := v_row.group_key;
            v_tie.rest_ids := v_ids;
            v_ties := v_ties || v_tie;
        end if;
    end loop;
    return v_ties;
exception
    when data_exception then
        perform rowq.internal_refuse_bad_value(e.message, e.place::integer)
        from jsonb_array_elements(p_given) with ordinality e (message, place);
        raise;
end;
$$;
