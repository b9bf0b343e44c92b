create or replace function rowq.internal_let_go(
    p_part_id     integer,
    p_message_ids bigint[],
    p_ended_id    bigint,
    inout p_most_looks integer,
    out o_again        bigint[]
)
language plpgsql
as $$
-- routine   internal_let_go
-- purpose   Let blocked messages go on that wait for nothing any more; those that fail with a predecessor are dead. o_again are those that need another look; p_most_looks is as for internal_unblock.
-- promise   P25 P26 P27
-- locks     as internal_unblock and internal_push_dead
declare
    v_done record;
begin
    v_done := rowq.internal_unblock(p_part_id, p_message_ids, p_ended_id, p_most_looks);
    p_most_looks := v_done.p_most_looks;
    o_again := v_done.o_again;
    if v_done.o_failed_ids is not null then
        perform rowq.internal_push_dead(
            p_part_id, v_done.o_failed_lanes, v_done.o_failed_ids, null, v_done.o_failed_errors,
            false
        );
    end if;
end;
$$;
