create or replace function rowq.internal_floor_frontier(p_lane smallint)
returns bigint
language plpgsql
as $$
-- routine   internal_floor_frontier
-- version   1
-- purpose   The newest number given out so far for rows of this kind of lane.
-- promise   P14
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   only engines whose readers walk dead rows need it
declare
    v_frontier bigint;
begin
    if p_lane >= 0 then
        select s.last_value into v_frontier from rowq.message_seq s;
    elsif p_lane = -2 then
        -- A delayed row is due later than the moment its writer, already numbered, looked at the clock.
        v_frontier := extract(epoch from clock_timestamp()) * 1000000;
    else
        select s.last_value into v_frontier from rowq.claim_seq s;
    end if;
    return v_frontier;
end;
$$;
