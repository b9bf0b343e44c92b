create or replace function rowq.internal_pop_ready_one(
    p_part_id         integer,
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_errors      text[]
)
language plpgsql
as $$
-- routine   internal_pop_ready_one
-- purpose   Take one message from the best lane that has one; nulls when there is none.
-- promise   P05 P06 P13
-- locks     a ready row, passing over locked ones
-- differs   only where a batch is arrays: one message costs a fifth less without queries for them
declare
    v_lane       smallint := -1;
    v_floor      bigint;
    v_seq        bigint;
    v_message_id bigint;
    v_attempt    smallint;
    v_error      text;
begin
    while v_message_id is null loop
        -- Find the next lane that was ever used, and its newest floor, in one step.
        select f.lane, f.seq into v_lane, v_floor
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane > v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        exit when not found;

        select r.seq, r.message_id, (r.attempt + 1)::smallint, r.last_error
        into v_seq, v_message_id, v_attempt, v_error
        from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = v_lane
          and r.seq >= v_floor
        order by r.part_id, r.lane, r.seq
        limit 1
        for update skip locked;
        continue when not found;

        delete from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = v_lane
          and r.seq = v_seq;

        -- Moving the floor costs a row in the ledger, so only one dequeue in seven does it of those
        -- that find the floor more than eight numbers away, and each one that finds it more than a
        -- thousand away.
        if (v_seq - v_floor > 8 and random() < 0.15) or v_seq - v_floor > 1000 then
            perform rowq.internal_move_floor(p_part_id, v_lane, true, p_cap => v_seq + 1);
        end if;
    end loop;

    if v_message_id is not null then
        o_message_ids := array[v_message_id];
        o_lanes := array[v_lane];
        o_attempts := array[v_attempt];
        if v_error is not null then
            o_errors := array[v_error];
        end if;
    end if;
end;
$$;
