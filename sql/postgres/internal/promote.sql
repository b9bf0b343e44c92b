create or replace function rowq.internal_promote(p_part_id integer, p_limit integer)
returns integer
language plpgsql
as $$
-- routine   internal_promote
-- purpose   Move up to p_limit due messages to the tails of their lanes, or into their groups, earliest first.
-- promise   P11 P21
-- locks     delayed rows, passing over locked ones; as internal_try_enter_group
declare
    -- The moment is a constant, because a scan that compares with clock_timestamp() itself would
    -- not stop at the last row that is due.
    v_now         constant timestamp with time zone := clock_timestamp();
    v_from        constant timestamp with time zone := rowq.internal_from_microseconds(
        rowq.internal_read_floor(p_part_id, -2::smallint /* delayed */)
    );
    v_row         record;
    v_message_ids bigint[];
    v_lanes       smallint[];
    v_attempts    smallint[];
    v_errors      text[];
    v_last_due_at timestamp with time zone;
    v_later       timestamp with time zone;
    v_promoted    integer := 0;
    v_has_token   boolean;
    v_is_late     boolean := false;
begin
    for v_row in
        select d.message_id, d.lane, d.attempt, d.last_error, d.due_at, d.group_key
        from rowq.delayed d
        where d.part_id = p_part_id
          and d.due_at >= v_from
          and d.due_at <= v_now
        order by d.part_id, d.due_at, d.message_id
        limit p_limit
        for update skip locked
    loop
        v_last_due_at := v_row.due_at;
        if v_row.group_key is not null then
            -- Wait for a producer once a call, and no longer than a moment.
            v_has_token := case
                when not v_is_late
                    then rowq.internal_try_enter_group(p_part_id, v_row.group_key)
            end;
            if v_has_token is null then
                v_is_late := true;
                v_later := clock_timestamp() + interval '0.5 seconds';
                update rowq.delayed d
                set due_at = v_later
                where d.part_id = p_part_id
                  and d.message_id = v_row.message_id;
                continue;
            end if;
        end if;

        -- Delete the rows one by one, because their ids may lie far apart, and the planner may make
        -- "= any" a filter over all rows.
        delete from rowq.delayed d
        where d.part_id = p_part_id
          and d.message_id = v_row.message_id;
        v_promoted := v_promoted + 1;
        if v_row.group_key is not null and not v_has_token then
            insert into rowq.grouped (part_id, lane, message_id, group_key, last_error)
            values (
                p_part_id, v_row.lane, v_row.message_id, v_row.group_key, v_row.last_error
            );
            continue;
        end if;
        v_message_ids := v_message_ids || v_row.message_id;
        v_lanes := v_lanes || v_row.lane;
        v_attempts := v_attempts || v_row.attempt;
        v_errors := v_errors || v_row.last_error;
    end loop;
    if v_message_ids is not null then
        perform rowq.internal_push_ready(p_part_id, v_lanes, v_message_ids, v_attempts, v_errors);
    end if;
    if v_promoted > 0 and random() < 0.08 * v_promoted then
        perform rowq.internal_move_floor(
            p_part_id, -2::smallint /* delayed */, true,
            p_cap => (extract(epoch from v_last_due_at) * 1000000)::bigint + 1
        );
    end if;
    return v_promoted;
end;
$$;
