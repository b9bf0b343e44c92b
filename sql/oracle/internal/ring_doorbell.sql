procedure internal_ring_doorbell(p_part_id in number, p_listened_until in timestamp)
is
-- routine   internal_ring_doorbell
-- version   1
-- purpose   Ring for who waits at a queue, where doorbell.sql was run and somebody listens.
-- promise   none
-- locks     none that another could wait for
-- commits   never; the ring is heard when the caller's transaction commits
-- errors    none
-- differs   this engine's own
    -- The user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
begin
    if p_listened_until is null or p_listened_until < sys_extract_utc(systimestamp) then
        return;
    end if;
    savepoint rowq_ring;
    -- By text, as the package is there only by choice.
    execute immediate 'begin rowq_doorbell.ring(:1); end;' using p_part_id;
exception
    when e_cancelled then
        raise;
    when others then
        -- A message counts for more than its ring: who listens looks once a second anyway.
        rollback to savepoint rowq_ring;
end internal_ring_doorbell;
