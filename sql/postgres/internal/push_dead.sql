create or replace function rowq.internal_push_dead(
    p_part_id     integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_error       text
)
returns void
language plpgsql
as $$
-- routine   internal_push_dead
-- purpose   Keep messages as dead with the last error; free their dedup keys, and their groups unless they are to wait.
-- promise   P10 P12 P21
-- locks     new dead rows; as internal_cut_ties
declare
    v_ties  constant text[] := rowq.internal_read_ties(p_part_id, p_message_ids);
    v_holds boolean := false;
begin
    if v_ties is not null then
        select q.group_after_dead = 'hold' into v_holds
        from rowq.queue q
        where q.part_id = p_part_id;
    end if;

    insert into rowq.dead (part_id, lane, attempt, message_id, died_at, last_error, holds_group)
    select p_part_id, u.lane, u.attempt, u.message_id, clock_timestamp(), left(p_error, 2000),
           case
               when v_holds then (
                   select true
                   from rowq.message m
                   where m.part_id = p_part_id
                     and m.message_id = u.message_id
                     and m.group_key is not null
               )
           end
    from unnest(p_lanes, p_message_ids, p_attempts) u (lane, message_id, attempt);

    if v_ties is not null then
        perform rowq.internal_cut_ties(p_part_id, v_ties, p_message_ids, not v_holds);
    end if;
end;
$$;
