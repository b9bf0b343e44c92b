procedure internal_wait_for_ring(
    p_part_id        in number,
    p_listened_until in out timestamp,
    p_has_doorbell   in out boolean
)
is
-- routine   internal_wait_for_ring
-- purpose   Note that somebody listens at a queue; if that is noted already, wait for a ring, for a second at most.
-- locks     the queue row, passed over when locked; none while waiting
-- commits   never; the caller commits at once, and looks before it listens again
-- differs   this engine's own
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    if p_listened_until is null or p_listened_until < v_now + numtodsinterval(2, 'second') then
        -- Say so for six seconds only, so that nobody rings for long for a session that was killed.
        p_listened_until := v_now + numtodsinterval(6, 'second');
        internal_note_listener(p_part_id, p_listened_until);
        return;
    end if;
    -- This is dynamic SQL, because the package exists only where the owner has run doorbell.sql.
    execute immediate 'begin rowq_doorbell.listen(:1); end;' using p_part_id;
exception
    when e_cancelled then
        raise;
    when others then
        -- The doorbell is broken or gone, so go on without it.
        p_has_doorbell := false;
end internal_wait_for_ring;
