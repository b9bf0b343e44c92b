procedure internal_maintain_archive(
    p_queue    in t_queue,
    p_limit    in number,
    p_archived out number,
    p_purged   out number,
    p_dropped  out number
)
is
-- routine   internal_maintain_archive
-- purpose   Run the archive part of maintain: move, purge whole days, drop partitions; an error in it is noted, not raised.
-- promise   P09 P19
-- locks     as archive and purge_archive; with a fault a row of meta
-- commits   as internal_drop_days; never the caller's transaction
-- differs   a fault is noted in meta, where health reads it: this engine's calls have no warnings
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    v_today constant timestamp(6) := cast(
        trunc(sys_extract_utc(systimestamp), 'dd') as timestamp
    );
    v_fault rowq_meta.value%type;
    v_kept  rowq_archive.message_id%type;
    cursor kept is
        select a.message_id
        from rowq_archive a
        where a.part_id = p_queue.part_id;
begin
    p_archived := 0;
    p_purged := 0;
    p_dropped := 0;
    savepoint rowq_archive_part;
    if p_queue.archive_days = 0 then
        -- A queue without an archive may have rows from a time when it had one, so look for them.
        open kept;
        fetch kept into v_kept;
        close kept;
        if v_kept is null and internal_first_key(p_queue.part_id, -3 /* finished */, 0) is null then
            internal_note_fault(p_queue.part_id, null);
            return;
        end if;
    end if;

    -- Drop partitions before this transaction has touched the archive, because its own locks would
    -- be in the way.
    p_dropped := internal_drop_days(false);
    p_archived := internal_archive(p_queue.part_id, p_limit);
    -- Purge whole days, because dropping a partition costs less than deleting its rows. A queue
    -- that keeps no archive any more is purged up to now.
    p_purged := internal_purge_archive(
        p_queue.part_id,
        case
            when p_queue.archive_days > 0
                then v_today - numtodsinterval(p_queue.archive_days, 'day')
            else sys_extract_utc(systimestamp)
        end,
        p_limit
    );
    internal_note_fault(p_queue.part_id, null);
exception
    when e_cancelled then
        raise;
    when others then
        -- An error in the archive, such as a full disk, is only noted, because promoting and
        -- reaping must go on.
        v_fault := substr(sqlerrm, 1, 500);
        rollback to savepoint rowq_archive_part;
        p_archived := 0;
        p_purged := 0;
        internal_note_fault(p_queue.part_id, v_fault);
end internal_maintain_archive;
