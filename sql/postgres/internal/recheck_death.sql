create or replace function rowq.internal_recheck_death(
    p_part_id    integer,
    p_message_id bigint,
    inout p_most_looks integer,
    out o_is_done      boolean
)
language plpgsql
as $$
-- routine   internal_recheck_death
-- purpose   Look again what waits for a dead message; o_is_done is false where a producer is still adding something that does. p_most_looks is as for internal_unblock.
-- promise   P27
-- locks     the message row, tried only; as internal_follow_deaths and internal_push_dead
declare
    v_next record;
begin
    perform
    from rowq.message m
    where m.part_id = p_part_id
      and m.message_id = p_message_id
    for update skip locked;
    if not found then
        o_is_done := not exists (
            select
            from rowq.message m
            where m.part_id = p_part_id
              and m.message_id = p_message_id
        );
        return;
    end if;

    -- One that was reset meanwhile is waited for as before.
    o_is_done := true;
    if exists (
        select
        from rowq.dead d
        where d.part_id = p_part_id
          and d.message_id = p_message_id
    ) then
        v_next := rowq.internal_follow_deaths(p_part_id, array[p_message_id], p_most_looks);
        p_most_looks := v_next.p_most_looks;
        if v_next.o_failed_ids is not null then
            p_most_looks := rowq.internal_push_dead(
                p_part_id, v_next.o_failed_lanes, v_next.o_failed_ids, null,
                v_next.o_failed_errors, false, p_most_looks
            );
        end if;
    end if;
end;
$$;
