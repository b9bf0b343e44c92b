function internal_maintain_kept(
    p_queue in t_queue,
    p_what  in varchar2,
    p_limit in number,
    p_until in timestamp
)
return number
is
-- routine   internal_maintain_kept
-- purpose   Purge 'results' or 'history' in maintain, a queue's first p_limit old rows, and till p_until up to ten times as many; an error in it is noted, not raised.
-- promise   P13 P32 P37
-- locks     as internal_purge_results or internal_purge_history; with a fault a row of meta
-- differs   a fault is noted in meta, where health reads it: this engine's calls have no warnings
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    c_most_batches constant pls_integer := 10;
    v_fault  rowq_meta.value%type;
    v_batch  number;
    v_purged number := 0;
begin
    savepoint rowq_kept_part;
    for i in 1 .. c_most_batches loop
        if p_what = 'results' then
            v_batch := internal_purge_results(p_queue, p_limit);
        else
            v_batch := internal_purge_history(p_queue, p_limit);
        end if;
        v_purged := v_purged + v_batch;
        exit when v_batch < p_limit or sys_extract_utc(systimestamp) > p_until;
    end loop;
    return v_purged;
exception
    when e_cancelled then
        raise;
    when others then
        -- An error is only noted, because housekeeping must go on. The archive has noted its own
        -- state before, and does so again before the next one of these.
        v_fault := substr(p_what || ': ' || sqlerrm, 1, 500);
        rollback to savepoint rowq_kept_part;
        internal_note_fault(p_queue.part_id, v_fault);
        return 0;
end internal_maintain_kept;
