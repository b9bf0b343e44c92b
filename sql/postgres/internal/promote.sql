create or replace function rowq.internal_promote(p_part_id integer, p_limit integer)
returns integer
language plpgsql
as $$
-- routine   internal_promote
-- version   1
-- purpose   Move up to p_limit due messages to the tails of their lanes, earliest first.
-- promise   P11
-- locks     delayed rows, passing over locked ones
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
declare
    -- A constant: compared with clock_timestamp() itself, the scan would not stop at what is due.
    v_now         constant timestamp with time zone := clock_timestamp();
    v_row         record;
    v_message_ids bigint[];
    v_lanes       smallint[];
    v_attempts    smallint[];
    v_errors      text[];
    v_last_due_at timestamp with time zone;
begin
    for v_row in
        select d.message_id, d.lane, d.attempt, d.last_error, d.due_at
        from rowq.delayed d
        where d.part_id = p_part_id
          and d.due_at >= rowq.internal_from_microseconds(
              rowq.internal_read_floor(p_part_id, -2::smallint)
          )
          and d.due_at <= v_now
        order by d.part_id, d.due_at, d.message_id
        limit p_limit
        for update skip locked
    loop
        -- One by one: the ids of due messages lie anywhere, and "= any" may become a filter.
        delete from rowq.delayed d
        where d.part_id = p_part_id
          and d.message_id = v_row.message_id;
        v_message_ids := v_message_ids || v_row.message_id;
        v_lanes := v_lanes || v_row.lane;
        v_attempts := v_attempts || v_row.attempt;
        v_errors := v_errors || v_row.last_error;
        v_last_due_at := v_row.due_at;
    end loop;
    if v_message_ids is null then
        return 0;
    end if;

    perform rowq.internal_push_ready(p_part_id, v_lanes, v_message_ids, v_attempts, v_errors);
    if random() < 0.08 * cardinality(v_message_ids) then
        perform rowq.internal_move_floor(
            p_part_id, -2::smallint, true,
            p_cap => (extract(epoch from v_last_due_at) * 1000000)::bigint + 1
        );
    end if;
    return cardinality(v_message_ids);
end;
$$;
