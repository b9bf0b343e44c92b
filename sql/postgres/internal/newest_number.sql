create or replace function rowq.internal_newest_number(p_lane smallint)
returns bigint
language plpgsql
as $$
-- routine   internal_newest_number
-- version   1
-- purpose   The newest number given out so far for rows of this kind of lane.
-- promise   P14
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   only engines whose readers walk dead rows need it
begin
    return coalesce(
        case
            when p_lane >= 0 then pg_sequence_last_value('rowq.message_seq')
            -- A delayed row is due later than the moment its writer, already numbered, looked at
            -- the clock.
            when p_lane = -2 then extract(epoch from clock_timestamp()) * 1000000
            else pg_sequence_last_value('rowq.claim_seq')
        end,
        0
    );
end;
$$;
