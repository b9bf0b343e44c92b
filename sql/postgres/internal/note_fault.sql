create or replace function rowq.internal_note_fault(p_part_id integer, p_fault text)
returns void
language plpgsql
as $$
-- routine   internal_note_fault
-- purpose   Keep the error with which maintain has failed for a queue, for health; null forgets it.
-- promise   P19
-- locks     advisory lock of the queue, tried; a meta row
declare
    v_name constant text := 'maintain_fault.' || p_part_id;
begin
    -- The session that is elected for the queue is the only one that writes this row, so that
    -- nobody waits for it.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
       or not pg_try_advisory_xact_lock(1919907697, p_part_id) then
        return;
    end if;
    if p_fault is null then
        delete from rowq.meta m
        where m.name = v_name;
        return;
    end if;
    insert into rowq.meta as m (name, value)
    values (v_name, left(p_fault, 500))
    on conflict (name) do update
        set value      = excluded.value,
            changed_at = excluded.changed_at
        where m.value <> excluded.value;
end;
$$;
