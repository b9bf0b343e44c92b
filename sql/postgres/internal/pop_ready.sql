create or replace function rowq.internal_pop_ready(
    p_part_id  integer,
    p_limit    integer,
    out o_message_ids bigint[],
    out o_lanes       smallint[],
    out o_attempts    smallint[],
    out o_errors      text[],
    out o_least_id    bigint,
    out o_greatest_id bigint
)
language plpgsql
as $$
-- routine   internal_pop_ready
-- version   1
-- purpose   Take up to p_limit messages from the lanes, best lane first; nulls when there is none.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
declare
    v_left  integer := p_limit;
    v_lane  smallint := -1;
    v_floor bigint;
    v_seqs  bigint[];
begin
    while v_left > 0 loop
        -- The next lane that was ever used, and its newest floor, in one step.
        select f.lane, f.seq into v_lane, v_floor
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane > v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        exit when not found;

        select array_agg(h.seq),
               o_message_ids || array_agg(h.message_id),
               o_lanes || array_agg(v_lane),
               o_attempts || array_agg((h.attempt + 1)::smallint),
               o_errors || array_agg(h.last_error),
               least(o_least_id, min(h.message_id)),
               greatest(o_greatest_id, max(h.message_id))
        into v_seqs, o_message_ids, o_lanes, o_attempts, o_errors, o_least_id, o_greatest_id
        from (
            select r.seq, r.message_id, r.attempt, r.last_error
            from rowq.ready r
            where r.part_id = p_part_id
              and r.lane = v_lane
              and r.seq >= v_floor
            order by r.part_id, r.lane, r.seq
            limit v_left
            for update skip locked
        ) h;
        continue when v_seqs is null;
        v_left := v_left - cardinality(v_seqs);

        -- The bounds matter: planned while the table was small, "= any" alone becomes a filter over
        -- the whole lane, dead rows too, for as long as the session lives.
        delete from rowq.ready r
        where r.part_id = p_part_id
          and r.lane = v_lane
          and r.seq between v_seqs[1] and v_seqs[cardinality(v_seqs)]
          and r.seq = any (v_seqs);

        -- One dequeue in twelve moves the floor up behind what has been taken, and whoever finds it
        -- far away.
        if v_seqs[1] > v_floor and (random() < 0.08 or v_seqs[1] - v_floor > 1000) then
            perform rowq.internal_move_floor(
                p_part_id, v_lane, true, p_cap => v_seqs[cardinality(v_seqs)] + 1
            );
        end if;
    end loop;
end;
$$;
