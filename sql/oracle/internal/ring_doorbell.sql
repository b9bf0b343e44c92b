procedure internal_ring_doorbell(p_part_id in number, p_listened_until in timestamp)
is
-- routine   internal_ring_doorbell
-- purpose   Ring for the sessions that wait at a queue, if doorbell.sql was run and somebody listens.
-- locks     none that another could wait for
-- commits   never; the ring is heard when the caller's transaction commits
-- differs   this engine's own
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
begin
    if p_listened_until is null or p_listened_until < sys_extract_utc(systimestamp) then
        return;
    end if;
    -- This is dynamic SQL, because the package exists only where the owner has run doorbell.sql.
    execute immediate 'begin rowq_doorbell.ring(:1); end;' using p_part_id;
exception
    when e_cancelled then
        raise;
    when others then
        -- Never fail a call because its ring failed: listeners look once a second anyway. The
        -- statement that failed has left nothing to roll back.
        return;
end internal_ring_doorbell;
