create or replace function rowq.internal_lock_gate(p_part_id integer)
returns boolean
language plpgsql
as $$
-- routine   internal_lock_gate
-- purpose   Lock the gate of a limited queue; return whether that was done in a tenth of a second.
-- promise   P28 P29
-- locks     the gate of the queue, tried for a tenth of a second
declare
    v_is_locked boolean;
    v_until     timestamp with time zone;
begin
    -- Nap between tries instead of waiting with a time-out, because a time-out at the very end of a
    -- wait for a row shows as a cancel by the user, and a cancel must never be taken for one.
    loop
        perform 1
        from rowq.gate g
        where g.part_id = p_part_id
        for update skip locked;
        v_is_locked := found;
        exit when v_is_locked;

        v_until := coalesce(v_until, clock_timestamp() + interval '100 milliseconds');
        exit when clock_timestamp() >= v_until;
        perform pg_sleep(0.005);
    end loop;
    return v_is_locked;
end;
$$;
