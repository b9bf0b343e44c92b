create or replace function rowq.internal_push_dead(
    p_part_id     integer,
    p_lanes       smallint[],
    p_message_ids bigint[],
    p_attempts    smallint[],
    p_errors      text[],
    p_have_tokens boolean default true,
    inout p_most_looks integer default 10000
)
language plpgsql
as $$
-- routine   internal_push_dead
-- purpose   Keep messages as dead with their last errors, after no attempt where p_attempts is null; free their dedup keys, and their groups unless they are to wait; then what waits for them does as it asked. p_most_looks is as for internal_unblock.
-- promise   P10 P12 P21 P27 P32
-- locks     new dead and result rows; as internal_cut_ties and internal_follow_deaths
declare
    c_most  constant integer := 1000;
    v_ties  text[];
    v_holds boolean;
    v_next  record;
    v_count integer := 0;
begin
    loop
        v_ties := rowq.internal_read_ties(p_part_id, p_message_ids);
        v_holds := false;
        if v_ties is not null and p_have_tokens then
            select q.group_after_dead = 'hold' into v_holds
            from rowq.queue q
            where q.part_id = p_part_id;
        end if;

        insert into rowq.dead (part_id, lane, attempt, message_id, died_at, last_error, holds_group)
        select p_part_id, u.lane, coalesce(u.attempt, 0), u.message_id, clock_timestamp(),
               left(u.last_error, 2000),
               case
                   when v_holds then (
                       select true
                       from rowq.message m
                       where m.part_id = p_part_id
                         and m.message_id = u.message_id
                         and m.group_key is not null
                   )
               end
        from unnest(p_lanes, p_message_ids, p_attempts, p_errors)
            u (lane, message_id, attempt, last_error);

        if v_ties is not null then
            perform rowq.internal_cut_ties(
                p_part_id, v_ties, p_message_ids, p_have_tokens and not v_holds, false
            );
        end if;
        perform rowq.internal_push_result(p_part_id, p_message_ids, 'dead', p_errors);

        -- A long tree dies in steps, so that no transaction grows without end.
        v_count := v_count + cardinality(p_message_ids);
        if not p_have_tokens and v_count > c_most then
            perform rowq.internal_recheck_later(p_part_id, null, p_message_ids, true);
            return;
        end if;
        v_next := rowq.internal_follow_deaths(p_part_id, p_message_ids, p_most_looks);
        p_most_looks := v_next.p_most_looks;
        exit when v_next.o_failed_ids is null;
        p_message_ids := v_next.o_failed_ids;
        p_lanes := v_next.o_failed_lanes;
        p_attempts := null;
        p_errors := v_next.o_failed_errors;
        p_have_tokens := false;
    end loop;
end;
$$;
