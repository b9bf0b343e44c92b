procedure internal_wait_for_ring(
    p_part_id        in number,
    p_listened_until in out timestamp,
    p_has_doorbell   in out boolean
)
is
-- routine   internal_wait_for_ring
-- version   1
-- purpose   Say that somebody listens at a queue; where that was said before, wait for a ring, for a second at most.
-- promise   none
-- locks     the queue row, passed over when locked; none while waiting
-- commits   never; the caller commits at once, and looks before it listens again
-- errors    none
-- differs   this engine's own
    -- The user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    if p_listened_until is null or p_listened_until < v_now + numtodsinterval(2, 'second') then
        -- For a while only, so that nobody rings for long for a session that was killed.
        p_listened_until := v_now + numtodsinterval(6, 'second');
        internal_note_listener(p_part_id, p_listened_until);
        return;
    end if;
    -- By text, as the package is there only by choice.
    execute immediate 'begin rowq_doorbell.listen(:1); end;' using p_part_id;
exception
    when e_cancelled then
        raise;
    when others then
        -- A doorbell that is broken or gone: go on without.
        p_has_doorbell := false;
end internal_wait_for_ring;
