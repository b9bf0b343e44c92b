create or replace function rowq.internal_withdraw(
    p_part_id      integer,
    p_archive_days integer,
    p_message_ids  bigint[]
)
returns bigint[]
language plpgsql
as $$
-- routine   internal_withdraw
-- purpose   Cancel those messages that no worker holds, and return them.
-- promise   P03 P12 P22
-- locks     as internal_pop_waiting, then as internal_finish
declare
    v_found record;
begin
    v_found := rowq.internal_pop_waiting(p_part_id, p_message_ids);
    if v_found.o_message_ids <> '{}' then
        perform rowq.internal_finish(
            p_part_id, p_archive_days, v_found.o_message_ids, v_found.o_lanes, v_found.o_attempts,
            'cancelled', v_found.o_tokenless
        );
    end if;
    return v_found.o_message_ids;
end;
$$;
