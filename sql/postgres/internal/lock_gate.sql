create or replace function rowq.internal_lock_gate(p_part_id integer)
returns boolean
language plpgsql
set lock_timeout = '100ms'
as $$
-- routine   internal_lock_gate
-- purpose   Lock the gate of a limited queue; return whether that was done in a tenth of a second.
-- promise   P28 P29
-- locks     the gate of the queue, waited for a tenth of a second
begin
    perform 1
    from rowq.gate g
    where g.part_id = p_part_id
    for update skip locked;
    if found then
        return true;
    end if;

    -- Wait only now, because a block with an exception is a transaction of its own each time.
    begin
        perform 1
        from rowq.gate g
        where g.part_id = p_part_id
        for update;
        return found;
    exception
        when lock_not_available then
            return false;
    end;
end;
$$;
