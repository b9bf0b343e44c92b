create or replace function rowq.internal_pop_ready_one(
    p_part_id integer,
    out o_message_id bigint,
    out o_lane       smallint,
    out o_attempt    smallint,
    out o_error      text
)
language plpgsql
as $$
-- routine   internal_pop_ready_one
-- version   1
-- purpose   Take one message from the best lane that has one; nulls when there is none.
-- promise   P05 P06 P13
-- locks     a ready row, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   only where a batch is arrays: without them one message costs a fifth less
declare
    v_lane  smallint := -1;
    v_floor bigint;
    v_seq   bigint;
begin
    while o_message_id is null loop
        -- The next lane that was ever used, and its newest floor, in one step.
        select f.lane, f.seq into v_lane, v_floor
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane > v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        exit when not found;

        select r.seq, r.message_id, r.lane, (r.attempt + 1)::smallint, r.last_error
        into v_seq, o_message_id, o_lane, o_attempt, o_error
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

        -- From the eighth number on one dequeue in seven moves the floor up behind what has been
        -- taken, and whoever finds it far away.
        if (v_seq - v_floor > 8 and random() < 0.15) or v_seq - v_floor > 1000 then
            perform rowq.internal_move_floor(p_part_id, v_lane, true, p_cap => v_seq + 1);
        end if;
    end loop;
end;
$$;
