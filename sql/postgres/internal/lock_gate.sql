create or replace function rowq.internal_lock_gate(p_part_id integer)
returns boolean
language plpgsql
set lock_timeout = '100ms'
as $$
-- routine   internal_lock_gate
-- purpose   Lock the gate of a limited queue; return whether that was done in a tenth of a second.
-- promise   P28 P29
-- locks     the gate of the queue, waited for a tenth of a second
declare
    v_started timestamp with time zone;
begin
    perform 1
    from rowq.gate g
    where g.part_id = p_part_id
    for update skip locked;
    if found then
        return true;
    end if;

    -- Wait only now, because a block with an exception is a transaction of its own each time.
    v_started := clock_timestamp();
    begin
        perform 1
        from rowq.gate g
        where g.part_id = p_part_id
        for update;
        return found;
    exception
        when lock_not_available then
            return false;
        -- The wait for a row is two waits, and a time-out at the very end of the first one shows in
        -- the second as a cancel by the user. A cancel that comes earlier is none.
        when query_canceled then
            if clock_timestamp() - v_started < interval '100 milliseconds' then
                raise;
            end if;
            return false;
    end;
end;
$$;
