create or replace function rowq.internal_count_ready(
    p_part_id integer,
    p_limit   integer,
    out ready  bigint,
    out oldest timestamp with time zone
)
language plpgsql
as $$
-- routine   internal_count_ready
-- purpose   Count the ready messages up to p_limit, and find when the oldest at the head of a lane was enqueued.
-- promise   P13
declare
    v_lane  smallint := -1;
    v_safe  bigint;
    v_count bigint;
    v_head  timestamp with time zone;
begin
    ready := 0;
    loop
        select f.lane, f.safe into v_lane, v_safe
        from rowq.floor f
        where f.part_id = p_part_id
          and f.lane > v_lane
        order by f.part_id, f.lane, f.generation
        limit 1;
        exit when not found;

        select count(*) into v_count
        from (
            select 1
            from rowq.ready r
            where r.part_id = p_part_id
              and r.lane = v_lane
              and r.seq >= v_safe
            limit p_limit - ready
        ) h;
        ready := ready + v_count;

        select m.enqueued_at into v_head
        from rowq.ready r
        join rowq.message m on m.part_id = r.part_id and m.message_id = r.message_id
        where r.part_id = p_part_id
          and r.lane = v_lane
          and r.seq >= v_safe
        order by r.part_id, r.lane, r.seq
        limit 1;
        oldest := least(oldest, v_head);
    end loop;
end;
$$;
