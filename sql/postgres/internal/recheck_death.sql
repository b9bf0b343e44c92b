create or replace function rowq.internal_recheck_death(p_part_id integer, p_message_id bigint)
returns boolean
language plpgsql
as $$
-- routine   internal_recheck_death
-- purpose   Look again what waits for a dead message; false where a producer is still adding something that does.
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
        return not exists (
            select
            from rowq.message m
            where m.part_id = p_part_id
              and m.message_id = p_message_id
        );
    end if;

    -- One that was reset meanwhile is waited for as before.
    if exists (
        select
        from rowq.dead d
        where d.part_id = p_part_id
          and d.message_id = p_message_id
    ) then
        v_next := rowq.internal_follow_deaths(p_part_id, array[p_message_id]);
        if v_next.o_failed_ids is not null then
            perform rowq.internal_push_dead(
                p_part_id, v_next.o_failed_lanes, v_next.o_failed_ids, null,
                v_next.o_failed_errors, false
            );
        end if;
    end if;
    return true;
end;
$$;
